#!/usr/bin/env bash
# KerasHub 0.32.0: BertTextEmbedder.from_preset reads a directory of sentence-transformers, and of its pooling the flags
# "pooling_mode_cls_token" and the like. sentence-transformers has written one key instead, "pooling_mode", since 5.4. With
# "cls" or "max" there, KerasHub finds no flag and pools by the mean, without a warning: its vectors are other ones.
#
# A good guess is that a directory that loads is read as it states. (transformers 5 writes no vocab.txt, which KerasHub needs:
# without it, loading raises an error. With one, as here, nothing tells.)
#
# Output seen:
#   stated: cls
#   KerasHub pools by: mean
#   the cosines with sentence-transformers' vectors are 1: False
#   with the former flags, KerasHub pools by: cls
#   the cosines with sentence-transformers' vectors are 1: True
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet keras-hub==0.32.0 keras==3.15.1 sentence-transformers==6.2.0 \
    transformers==5.24.0 torch==2.13.0 tensorflow==2.21.0 tensorflow-text==2.21.1
cat >"$folder/try.py" <<'EOF'
import json
import shutil
import sys
from pathlib import Path

import keras_hub
import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from transformers import BertConfig, BertModel, BertTokenizerFast

folder = Path(sys.argv[1])
plain, saved = folder / "plain", folder / "saved"
plain.mkdir(parents=True)
(plain / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cat", "dog"]))
BertTokenizerFast(str(plain / "vocab.txt")).save_pretrained(plain)
sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
BertModel(BertConfig(vocab_size=8, initializer_range=0.5, **sizes)).save_pretrained(plain)
modules = [Transformer(str(plain)), Pooling(8, pooling_mode="cls")]
SentenceTransformer(modules=modules, device="cpu").save_pretrained(str(saved))
shutil.copyfile(plain / "vocab.txt", saved / "vocab.txt")
texts, path = ["a cat", "a dog a cat"], saved / "1_Pooling" / "config.json"
theirs = SentenceTransformer(str(saved), device="cpu").encode(texts, normalize_embeddings=True)


def compare():
    embedder = keras_hub.models.BertTextEmbedder.from_preset(str(saved))
    vectors = np.asarray(embedder.predict(texts, verbose=0))
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    is_equal = bool(np.allclose((vectors * theirs).sum(axis=1), 1, atol=1e-4))
    return embedder.pooling_mode, is_equal


print("stated:", json.loads(path.read_text())["pooling_mode"])
found = compare()
print("KerasHub pools by:", found[0])
print("the cosines with sentence-transformers' vectors are 1:", found[1])
path.write_text(json.dumps({"word_embedding_dimension": 8, "pooling_mode_cls_token": True}))
former = compare()
print("with the former flags, KerasHub pools by:", former[0])
print("the cosines with sentence-transformers' vectors are 1:", former[1])
assert found == ("mean", False) and former == ("cls", True)
EOF
KERAS_BACKEND=torch HF_HUB_OFFLINE=1 "$folder/env/bin/python" "$folder/try.py" "$folder/model" 2>/dev/null
