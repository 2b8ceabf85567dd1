#!/usr/bin/env bash
# sentence-transformers 6.2.0: a sparse encoder whose queries are looked up (a Router with a new SparseStaticEmbedding for
# queries, and a masked language model for documents) has vectors of two widths where the model's vocabulary is larger than
# the tokenizer's, as it is where a vocabulary was padded to a multiple of 64 (ModernBERT, DeBERTa). Queries have one weight
# for each token of the tokenizer, documents one for each row of the model's embedding. Both are encoded without a warning;
# the first `similarity` raises an error about shapes in torch.
#
# A good guess is that both sides have the width of the model, as they share one vocabulary. A `weight` of the model's width
# cures it at first, and is then refused when the saved directory is loaded, as the layer is made with the tokenizer's width.
#
# Output seen:
#   queries (1, 8), documents (1, 16)
#   similarity: RuntimeError
#   with 16 weights: queries (1, 16), documents (1, 16)
#   loaded again: RuntimeError
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet sentence-transformers==6.2.0 transformers==5.24.0 torch==2.13.0
cat >"$folder/try.py" <<'EOF'
import sys
from pathlib import Path

import torch
from sentence_transformers import SparseEncoder
from sentence_transformers.base.modules import Router
from sentence_transformers.sparse_encoder.modules import MLMTransformer, SparseStaticEmbedding, SpladePooling
from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

folder = Path(sys.argv[1])
folder.mkdir()
(folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cat", "dog"]))
BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
BertForMaskedLM(BertConfig(vocab_size=16, **sizes)).save_pretrained(folder)


def of_both_sides(weight):
    documents = MLMTransformer(str(folder))
    queries = SparseStaticEmbedding(documents.tokenizer, weight=weight)
    router = Router.for_query_document([queries], [documents, SpladePooling()])
    model = SparseEncoder(modules=[router], device="cpu")
    query, document = model.encode_query(["a cat"]), model.encode_document(["a dog"])
    return model, query, document, f"queries {tuple(query.shape)}, documents {tuple(document.shape)}"


def error_of(call):
    try:
        call()
    except RuntimeError as error:
        return type(error).__name__
    return None


model, query, document, shapes = of_both_sides(None)
print(shapes)
print("similarity:", found := error_of(lambda: model.similarity(query, document)))
assert (query.shape[1], document.shape[1], found) == (8, 16, "RuntimeError")
model, query, document, shapes = of_both_sides(torch.ones(16))
print("with 16 weights:", shapes)
model.save_pretrained(str(folder / "saved"))
print("loaded again:", found := error_of(lambda: SparseEncoder(str(folder / "saved"), device="cpu")))
assert query.shape == document.shape and found == "RuntimeError"
EOF
HF_HUB_OFFLINE=1 "$folder/env/bin/python" "$folder/try.py" "$folder/model" 2>/dev/null
