#!/usr/bin/env bash
# transformers 5.24.0: the tokenizer of DeBERTa-v2, v3 and mDeBERTa does not read the character map of `spm.model`, by which
# SentencePiece, and so the pretraining, makes plain characters of full-width letters, ligatures, digits in circles and
# the ideographic space. They become unknown tokens, or the space a part of a word, without a warning.
#
# A good guess is that it reads the model as the tokenizer of XLM-RoBERTa does, from the same kind of file: that one has
# the map. Chinese and Japanese texts, and texts of PDF files, are full of such characters.
#
# Output seen (the model below is SentencePiece's own, trained on a few sentences):
#   full-width letters   ['▁', 'ｃａｔ']; SentencePiece and XLM-RoBERTa ['▁', 'c', 'at']
#   a ligature           ['▁', 'ﬁ', 'l', 'e']; SentencePiece and XLM-RoBERTa ['▁f', 'i', 'l', 'e']
#   an ideographic space ['▁', 'a', '\u3000', 'c', 'at']; SentencePiece and XLM-RoBERTa ['▁', 'a', '▁', 'c', 'at']
#   ids of the letters   unknown 1; SentencePiece 0
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
deberta, roberta = folder / "deberta", folder / "roberta"
for directory, kind in ((deberta, "deberta-v2"), (roberta, "xlm-roberta")):
    directory.mkdir(parents=True)
    (directory / "config.json").write_text('{"model_type": "%s"}' % kind)
path = deberta / "spm.model"
sentences = ["the cat sat on a mat", "a dog ran far", "does it rain , no it does not", "see file 12 now"]
with path.open("wb") as model:
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences * 20),
        model_writer=model,
        vocab_size=45,
        hard_vocab_limit=False,
        minloglevel=2,
        **{"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3},
        **{"pad_piece": "[PAD]", "bos_piece": "[CLS]", "eos_piece": "[SEP]", "unk_piece": "[UNK]"},
    )
(roberta / "sentencepiece.bpe.model").write_bytes(path.read_bytes())
reference = sentencepiece.SentencePieceProcessor(model_file=str(path))
tokenizers = [AutoTokenizer.from_pretrained(directory) for directory in (deberta, roberta)]
texts = {"full-width letters": "ｃａｔ", "a ligature": "ﬁle", "an ideographic space": "a\u3000cat"}
for name, text in texts.items():
    theirs, of_roberta = (tokenizer.tokenize(text) for tokenizer in tokenizers)
    pieces = reference.encode(text, out_type=str)
    print(f"{name:20} {theirs}; SentencePiece and XLM-RoBERTa {pieces}")
    assert theirs != pieces == of_roberta
letters = texts["full-width letters"]
unknown = [tokenizers[0](letters)["input_ids"].count(3), reference.encode(letters).count(3)]
print(f"ids of the letters   unknown {unknown[0]}; SentencePiece {unknown[1]}")
assert unknown == [1, 0]
EOF
"$folder/env/bin/python" "$folder/try.py" "$folder/tokenizers" 2>/dev/null
