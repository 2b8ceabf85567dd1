#!/usr/bin/env bash
# transformers 5.24.0: the tokenizer of ALBERT gives a pair of texts no segments. Its template makes them, 0 for the first
# text and 1 for the second, as ALBERT was pretrained and as its paper has it, and the class leaves them out of the result:
# `model_input_names` has no `token_type_ids`. `AlbertModel` then takes 0 for both texts, without a warning.
#
# A good guess is that it works as BERT's tokenizer, whose pairs have segments; the documentation of the model shows them.
# A model that was fine-tuned on pairs with segments gives other answers. `return_token_type_ids=True` returns them.
#
# Output seen:
#   AlbertTokenizer input_ids, attention_mask
#   segments of its template: 0 0 0 0 0 0 0 1 1 1 1 1 1
#   asked for: 0 0 0 0 0 0 0 1 1 1 1 1 1
#   BertTokenizer input_ids, token_type_ids, attention_mask
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet transformers==5.24.0 sentencepiece==0.2.3 protobuf==7.36.2
cat >"$folder/try.py" <<'EOF'
import sys
from pathlib import Path

import sentencepiece
from transformers import AutoTokenizer

folder = Path(sys.argv[1])
albert, bert = folder / "albert", folder / "bert"
for directory, kind in ((albert, "albert"), (bert, "bert")):
    directory.mkdir(parents=True)
    (directory / "config.json").write_text('{"model_type": "%s"}' % kind)
# The ids of ALBERT's special tokens.
with (albert / "spiece.model").open("wb") as model:
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b c d", "b a d c"] * 9),
        model_writer=model,
        vocab_size=14,
        hard_vocab_limit=False,
        minloglevel=2,
        **{"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": "[CLS],[SEP],[MASK]"},
    )
(bert / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcd"]))
tokenizer = AutoTokenizer.from_pretrained(albert)
found = tokenizer("a b c", "d a b")
print(type(tokenizer).__name__, ", ".join(found))
print("segments of its template:", *found.encodings[0].type_ids)
asked = tokenizer("a b c", "d a b", return_token_type_ids=True)["token_type_ids"]
print("asked for:", *asked)
of_bert = AutoTokenizer.from_pretrained(bert)
print(type(of_bert).__name__, ", ".join(of_bert("a b c", "d a b")))
assert "token_type_ids" not in found
assert found.encodings[0].type_ids == asked and 1 in asked
assert "token_type_ids" in of_bert("a b c", "d a b")
EOF
"$folder/env/bin/python" "$folder/try.py" "$folder/tokenizers" 2>/dev/null
