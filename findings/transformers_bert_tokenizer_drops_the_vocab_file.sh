#!/usr/bin/env bash
# transformers 5.24.0: `BertTokenizer(vocab_file="vocab.txt")`, the keyword of every release up to 4, is accepted and
# ignored. The tokenizer has the five special tokens alone, reads every word as [UNK], and warns of nothing.
#
# The keyword is `vocab` now, and any other one is taken as an option of the base class. A good guess is that an unknown
# keyword is an error, or that the old name still works. `BertTokenizerFast` is the same class in 5.x. The vocabulary is
# read where the file is the first argument, as `vocab=`, or by `from_pretrained` of its folder.
#
# Output seen:
#   vocab_file=: 5 tokens, ids [2, 1, 1, 3]
#   first argument: 7 tokens, ids [2, 5, 6, 3]
#   vocab=: 7 tokens, ids [2, 5, 6, 3]
#   from_pretrained: 7 tokens, ids [2, 5, 6, 3]
#   warnings: 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet transformers==5.24.0
cat >"$folder/try.py" <<'EOF'
import sys
import warnings
from pathlib import Path

from transformers import BertTokenizer, BertTokenizerFast

folder = Path(sys.argv[1])
folder.mkdir()
file = folder / "vocab.txt"
file.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "dog"]))
assert BertTokenizerFast is BertTokenizer
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    tokenizers = {
        "vocab_file=": BertTokenizer(vocab_file=str(file)),
        "first argument": BertTokenizer(str(file)),
        "vocab=": BertTokenizer(vocab=str(file)),
        "from_pretrained": BertTokenizer.from_pretrained(folder),
    }
for name, tokenizer in tokenizers.items():
    ids = tokenizer("cat dog")["input_ids"]
    print(f"{name}: {len(tokenizer)} tokens, ids {ids}")
    dropped = name == "vocab_file="
    assert (len(tokenizer), ids) == ((5, [2, 1, 1, 3]) if dropped else (7, [2, 5, 6, 3])), name
print("warnings:", len(caught))
assert not caught
EOF
"$folder/env/bin/python" "$folder/try.py" "$folder/words" 2>/dev/null
