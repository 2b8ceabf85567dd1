#!/usr/bin/env bash
# transformers 5.24.0: a `tokenizer.json` of a cased BERT, whose normalizer keeps capitals and accents, is lower-cased if
# tokenizer_config.json names BERT's class and does not state `do_lower_case`. The class builds the normalizer anew from
# its own arguments, whose default is to lower-case, and takes only the vocabulary of the file. There is no warning: words
# with capitals become other tokens, here [UNK].
#
# A good guess is that tokenizer.json, which holds the whole tokenizer, is what is run, as the library `tokenizers` does
# with the same file, and as transformers does under the class PreTrainedTokenizerFast.
#
# Output seen:
#   the file's normalizer keeps capitals: True
#   tokenizers: ['Paris', 'is', 'Große']
#   BertTokenizer: ['[UNK]', 'is', '[UNK]']
#   PreTrainedTokenizerFast: ['Paris', 'is', 'Große']
#   BertTokenizer, do_lower_case false: ['Paris', 'is', 'Große']
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet transformers==5.24.0 tokenizers==0.23.1
cat >"$folder/try.py" <<'EOF'
import json
import sys
from pathlib import Path

from tokenizers import BertWordPieceTokenizer
from transformers import AutoTokenizer

folder, text = Path(sys.argv[1]), "Paris is Große"
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "Paris", "is", "Große"]
library = BertWordPieceTokenizer({word: place for place, word in enumerate(words)}, lowercase=False)
expected = library.encode(text, add_special_tokens=False).tokens
normalizer = json.loads(library.to_str())["normalizer"]
print("the file's normalizer keeps capitals:", not normalizer["lowercase"])
print("tokenizers:", expected)


def tokens(name, **options):
    folder.mkdir(exist_ok=True)
    library.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": name, "unk_token": "[UNK]", **options}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return AutoTokenizer.from_pretrained(folder).tokenize(text)


found, generic = tokens("BertTokenizer"), tokens("PreTrainedTokenizerFast")
stated = tokens("BertTokenizer", do_lower_case=False)
print("BertTokenizer:", found)
print("PreTrainedTokenizerFast:", generic)
print("BertTokenizer, do_lower_case false:", stated)
assert expected == generic == stated == words[5:]
assert found == ["[UNK]", "is", "[UNK]"]
EOF
"$folder/env/bin/python" "$folder/try.py" "$folder/tokenizers" 2>/dev/null
