#!/usr/bin/env bash
# fastembed 0.9.1: of two lengths in `tokenizer_config.json` it takes the smaller, and cuts texts there without a word.
#
# One would think that `model_max_length` says how many tokens of a text are read, as it does for transformers. But many
# directories that were saved with truncation hold `max_length` too, the length of that one run, which transformers and
# sentence-transformers do not read: all-MiniLM-L6-v2 has 512 and 128, and sentence-transformers reads 256 of it by its
# own `max_seq_length`. fastembed takes the smaller of both, so a paragraph gets the vector of its first 128 tokens,
# and its cosine with that of sentence-transformers falls to 0.8. Vectors of one index from both programs do not match.
# The cure is to write the same number to both keys.
#
# Seen: 300 words give 128 tokens with `max_length` 128, and 302 without that key (`model_max_length` is 512).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet fastembed==0.9.1 onnxruntime==1.32.0 onnx==1.22.0
cat >"$folder/program.py" <<'END'
import json
import sys
from pathlib import Path

import onnx
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
from onnx import TensorProto, helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

# A model whose vector is the number of tokens that it is given.
names = ["input_ids", "attention_mask", "token_type_ids"]
nodes = [
    helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
    helper.make_node("ReduceSum", ["mask", "axis"], ["vectors"], keepdims=1),
]
graph = helper.make_graph(
    nodes,
    "counts_tokens",
    [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in names],
    [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["batch", 1])],
    [helper.make_tensor("axis", TensorProto.INT64, [1], [1])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
special = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
vocabulary = {token: index for index, token in enumerate([*special.values(), "word"])}
tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))


def num_tokens(folder, lengths):
    folder.mkdir()
    onnx.save(model, str(folder / "model.onnx"))
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0}))
    (folder / "special_tokens_map.json").write_text(json.dumps(special))
    (folder / "tokenizer_config.json").write_text(json.dumps({**special, **lengths}))
    name = f"counting/{folder.name}"
    source = ModelSource(url="http://localhost")
    TextEmbedding.add_custom_model(name, PoolingType.DISABLED, False, source, dim=1, model_file="model.onnx")
    (vector,) = TextEmbedding(name, specific_model_path=str(folder)).embed(["word " * 300])
    return float(vector.reshape(-1)[0])


one = num_tokens(Path(sys.argv[1], "one"), {"model_max_length": 512})
both = num_tokens(Path(sys.argv[1], "both"), {"model_max_length": 512, "max_length": 128})
print("tokens of 300 words:", one, "with model_max_length 512,", both, "with max_length 128 beside it")
assert (one, both) == (302.0, 128.0)
END
"$folder/environment/bin/python" "$folder/program.py" "$folder"
