#!/usr/bin/env bash
# CTranslate2 4.8.5 with transformers 5.24.0: the converter refuses a BERT that `save_pretrained` has just written, with
# an AttributeError, and takes the same folder once `config.json` says `"position_embedding_type": "absolute"`.
#
# transformers 5 has one kind of positions left in BERT, RoBERTa and XLM-RoBERTa, so its configs lost that key; the
# converter still reads it as an attribute of the config. A checkpoint that release 4 wrote has the key, which release 5
# keeps, so most of the hub's models are converted, and a good guess is that one's own fine-tuned model is too.
#
# Output seen:
#   bert, as written: AttributeError, 'BertConfig' object has no attribute 'position_embedding_type'
#   bert, with the key: converted
#   roberta, as written: AttributeError, 'RobertaConfig' object has no attribute 'position_embedding_type'
#   roberta, with the key: converted
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet ctranslate2==4.8.5 transformers==5.24.0 torch==2.13.0
cat >"$folder/try.py" <<'EOF'
import json
import sys
from pathlib import Path

from ctranslate2.converters import TransformersConverter
from transformers import BertConfig, BertModel, BertTokenizer, RobertaConfig, RobertaModel, RobertaTokenizer

folder = Path(sys.argv[1])
sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "dog"]
places = {word: place for place, word in enumerate(["<s>", "<pad>", "</s>", "<unk>", "c", "a", "t", "<mask>"])}
models = {
    "bert": (BertModel(BertConfig(vocab_size=7, **sizes)), BertTokenizer({word: n for n, word in enumerate(words)})),
    "roberta": (RobertaModel(RobertaConfig(vocab_size=8, **sizes)), RobertaTokenizer(vocab=places, merges=[])),
}
for name, (model, tokenizer) in models.items():
    model.save_pretrained(folder / name)
    tokenizer.save_pretrained(folder / name)
    config = folder / name / "config.json"
    values = json.loads(config.read_text())
    assert "position_embedding_type" not in values
    try:
        TransformersConverter(str(folder / name)).convert(str(folder / f"{name}-without"))
        raise SystemExit(f"{name}: converted as written")
    except AttributeError as error:
        print(f"{name}, as written: AttributeError, {error}")
        assert "position_embedding_type" in str(error)
    config.write_text(json.dumps({**values, "position_embedding_type": "absolute"}))
    TransformersConverter(str(folder / name)).convert(str(folder / f"{name}-with"))
    print(f"{name}, with the key: converted")
EOF
"$folder/env/bin/python" "$folder/try.py" "$folder/models" 2>/dev/null
