#!/usr/bin/env bash
# keras-hub 0.32.0: the tokenizer of an uncased BERT lower-cases letters and keeps their accents. BERT's own code, and all
# that follow it, take accents off when they lower-case, and the vocabulary of the uncased models was made so: it has
# `cafe` and no `café`. A word with an accent that the vocabulary lacks becomes [UNK], or other pieces, in silence.
#
# A good guess is that `lowercase=True` is the whole of "uncased", as `do_lower_case` is elsewhere, and that the presets
# read what the models were trained on. `strip_accents`, which the base class has, is not an argument of BertTokenizer's
# documentation; it reaches the base class if it is given, and then the ids are those of BERT.
#
# Output seen:
#   BERT's normalizer:  ['cafe', 'resume']
#   lowercase=True:     ['[UNK]', '[UNK]']
#   and strip_accents:  ['cafe', 'resume']
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet keras-hub==0.32.0 keras==3.15.1 tensorflow==2.21.0 \
    tensorflow-text==2.21.1 tokenizers==0.23.1
cat >"$folder/try.py" <<'EOF'
import keras_hub
from tokenizers import BertWordPieceTokenizer

text, words = "Café RÉSUMÉ", ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cafe", "resume"]
library = BertWordPieceTokenizer({word: place for place, word in enumerate(words)}, lowercase=True)
expected = library.encode(text, add_special_tokens=False).tokens
found, mended = (
    [words[place] for place in keras_hub.tokenizers.BertTokenizer(vocabulary=words, lowercase=True, **options)(text)]
    for options in ({}, {"strip_accents": True})
)
print("BERT's normalizer: ", expected)
print("lowercase=True:    ", found)
print("and strip_accents: ", mended)
assert expected == mended == ["cafe", "resume"]
assert found == ["[UNK]", "[UNK]"]
EOF
TF_CPP_MIN_LOG_LEVEL=3 KERAS_BACKEND=tensorflow "$folder/env/bin/python" "$folder/try.py" 2>/dev/null
