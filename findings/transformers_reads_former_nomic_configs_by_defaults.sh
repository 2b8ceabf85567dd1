#!/usr/bin/env bash
# transformers 5.24.0: a `config.json` of NomicBERT with the keys of the code that was in its repositories until
# transformers had the class (`n_embd`, `n_layer`, `rotary_emb_base`, ...) is read without an error or a warning, and
# none of these keys counts: every size and the base of the rotary positions are those of nomic-embed-text-v1.5.
#
# The names of tensors of that code are converted, so a good guess is that its config is too, as GPT-2's own class reads
# `n_embd` and `n_layer`. A model with other sizes then fails at the shapes of its tensors. One with the same sizes loads,
# with another base of its positions and another epsilon, and gives other vectors. The keys stay in the config as
# attributes, which looks as if they had been read.
#
# Output seen:
#   hidden_size 768, stated 384
#   num_hidden_layers 12, stated 6
#   rope_theta 1000.0, stated 10000
#   layer_norm_eps 1e-12, stated 1e-05
#   n_layer 6, as an attribute that nothing reads
#   GPT2Config reads n_layer as num_hidden_layers: 6
#   warnings: 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet transformers==5.24.0
cat >"$folder/try.py" <<'EOF'
import json
import sys
import warnings
from pathlib import Path

from transformers import AutoConfig, GPT2Config

folder = Path(sys.argv[1])
folder.mkdir()
former = {
    "model_type": "nomic_bert",
    "architectures": ["NomicBertModel"],
    "vocab_size": 30528,
    "n_embd": 384,
    "n_layer": 6,
    "n_head": 12,
    "n_inner": 1536,
    "n_positions": 2048,
    "activation_function": "swiglu",
    "layer_norm_epsilon": 1e-5,
    "rotary_emb_base": 10000,
    "rotary_emb_fraction": 1.0,
}
(folder / "config.json").write_text(json.dumps(former))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    config = AutoConfig.from_pretrained(folder)
found = {
    "hidden_size": (config.hidden_size, former["n_embd"]),
    "num_hidden_layers": (config.num_hidden_layers, former["n_layer"]),
    "rope_theta": (config.rope_parameters["rope_theta"], former["rotary_emb_base"]),
    "layer_norm_eps": (config.layer_norm_eps, former["layer_norm_epsilon"]),
}
for key, (read, stated) in found.items():
    print(f"{key} {read}, stated {stated}")
print(f"n_layer {config.n_layer}, as an attribute that nothing reads")
print("GPT2Config reads n_layer as num_hidden_layers:", GPT2Config(n_layer=6).num_hidden_layers)
print("warnings:", len(caught))
assert [read for read, _ in found.values()] == [768, 12, 1000.0, 1e-12]
assert (config.n_layer, GPT2Config(n_layer=6).num_hidden_layers, len(caught)) == (6, 6, 0)
EOF
"$folder/env/bin/python" "$folder/try.py" "$folder/former" 2>/dev/null
