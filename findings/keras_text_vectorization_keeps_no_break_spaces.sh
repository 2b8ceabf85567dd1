#!/usr/bin/env bash
# Keras 3.15.1 on TensorFlow 2.21.0: `TextVectorization` splits at the spaces of ASCII alone.
#
# One would think that `split="whitespace"` splits at what Python's `str.split` splits at. But `tf.strings.split`, which
# does it, knows the whitespace of ASCII only. French puts a no-break space (U+00A0) before "!", "?" and ":", and
# Japanese separates words by the ideographic space (U+3000). After the default clean-up has removed the punctuation,
# the no-break space is left at the end of the word: "bonjour" and "bonjour\xa0" are two entries of the vocabulary, each
# with a half of the examples, and words between ideographic spaces are one entry. Nothing shows it: the two entries
# look alike when printed.
#
# Seen: vocabulary with 'bonjour' and 'bonjour\xa0', and one entry for three words of Japanese.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet tensorflow==2.21.0 keras==3.15.1
cat >"$folder/program.py" <<'END'
import keras


def vocabulary(texts):
    layer = keras.layers.TextVectorization()
    layer.adapt(texts)
    return {str(token) for token in layer.get_vocabulary()} - {"", "[UNK]"}


french = vocabulary(["Bonjour\u00a0!", "Bonjour, madame"])
print("French", sorted(french))
assert french == {"bonjour", "bonjour\u00a0", "madame"}, "the no-break space stays at its word"
assert "Bonjour\u00a0!".split() == ["Bonjour", "!"], "Python splits there"
japanese = vocabulary(["東京\u3000大阪\u3000京都"])
print("Japanese", sorted(japanese))
assert japanese == {"東京\u3000大阪\u3000京都"}, "three words are one"
END
TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES= "$folder/environment/bin/python" "$folder/program.py"
