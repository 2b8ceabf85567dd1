#!/usr/bin/env bash
# transformers 5.24.0: a token of `added_tokens_decoder` gets another id than the one that is written beside it. A spare
# token of the vocabulary, `[unused1]` with the id 8, is renamed in tokenizer_config.json, as it is done to give a token of
# one's own a trained row: `"8": {"content": "[NAME]"}`. `tokenizer.json` still calls it `[unused1]`. The tokenizer loads
# without a warning, reads `[NAME]` as the next free id, 10, and writes that id when it is saved.
#
# A good guess is that the keys of this dictionary are the ids, as they are named; the documentation calls it a mapping
# from ids to tokens. A model with a row for each token of the vocabulary has no row 10, so it fails, or reads a row of
# padding that nobody trained. The token must be renamed in the vocabulary of tokenizer.json, and then it has its id.
#
# Output seen:
#   stated 8: [5, 10, 7], 11 tokens
#   saved: {'[PAD]': 0, '[UNK]': 1, '[NAME]': 10}
#   renamed in tokenizer.json too: [5, 8, 7], 10 tokens
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet transformers==5.24.0 tokenizers==0.23.1
cat >"$folder/try.py" <<'EOF'
import json
import sys
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer

words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "good", "film", "[unused1]", "bad"]
special = {"special": True, "lstrip": False, "rstrip": False, "normalized": False, "single_word": False}
config = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "unk_token": "[UNK]",
    "added_tokens_decoder": {"0": {"content": "[PAD]", **special}, "8": {"content": "[NAME]", **special}},
}


def written(name, words):
    folder = Path(sys.argv[1], name)
    folder.mkdir(parents=True)
    vocabulary = {word: place for place, word in enumerate(words)}
    library = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return AutoTokenizer.from_pretrained(folder)


tokenizer = written("stated", words)
ids = tokenizer("a [NAME] film")["input_ids"]
print(f"stated 8: {ids}, {len(tokenizer)} tokens")
tokenizer.save_pretrained(Path(sys.argv[1], "saved"))
saved = json.loads(Path(sys.argv[1], "saved", "tokenizer.json").read_text())["added_tokens"]
saved = {token["content"]: token["id"] for token in saved}
print("saved:", saved)
renamed = written("renamed", [word.replace("[unused1]", "[NAME]") for word in words])
print(f"renamed in tokenizer.json too: {renamed('a [NAME] film')['input_ids']}, {len(renamed)} tokens")
assert ids == [5, 10, 7] and saved["[NAME]"] == 10 and len(tokenizer) == 11
assert renamed("a [NAME] film")["input_ids"] == [5, 8, 7] and len(renamed) == 10
EOF
"$folder/env/bin/python" "$folder/try.py" "$folder/tokenizers" 2>/dev/null
