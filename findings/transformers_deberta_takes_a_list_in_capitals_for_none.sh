#!/usr/bin/env bash
# transformers 5.24.0: `pos_att_type` of DeBERTa-v2 and v3 may be a string with bars or a list. A string is made small
# letters, a list is not: `["C2P", "P2C"]` passes without an error or a warning, and the attention has neither product with
# positions, as if the list were empty. Where there is no table of positions either, as in v3, the encoder then knows no
# order of tokens at all.
#
# A good guess is that both forms are read alike, or that an unknown word is an error.
#
# Output seen:
#   'C2P|P2C' differs from ['c2p', 'p2c'] by 0.0
#   ['C2P', 'P2C'] differs from [] by 0.0, from ['c2p', 'p2c'] by more than 0.1: True
#   ['C2P', 'P2C']: in the other order, a token's output differs by less than 1e-5: True
#   warnings: 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet transformers==5.24.0 torch==2.13.0 numpy==2.4.6
cat >"$folder/try.py" <<'EOF'
import warnings

import torch
from transformers import DebertaV2Config, DebertaV2Model

SIZES = {"vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20}
SIZES |= {"relative_attention": True, "position_buckets": 8, "position_biased_input": False, "type_vocab_size": 0}
SIZES |= {"initializer_range": 0.5, "share_att_key": True, "norm_rel_ebd": "layer_norm"}


def output(kinds, tokens=(3, 7, 5, 11, 4)):
    torch.manual_seed(1)
    model = DebertaV2Model(DebertaV2Config(**SIZES, pos_att_type=kinds)).eval()
    with torch.no_grad():
        return model(torch.tensor([tokens])).last_hidden_state[0]


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    small, text, large, empty = map(output, (["c2p", "p2c"], "C2P|P2C", ["C2P", "P2C"], []))
    turned = output(["C2P", "P2C"], (4, 11, 5, 7, 3)).flip(0)
far = [float((one - other).abs().max()) for one, other in ((text, small), (large, empty), (large, small))]
order = float((large - turned).abs().max())
print("'C2P|P2C' differs from ['c2p', 'p2c'] by", far[0])
print("['C2P', 'P2C'] differs from [] by", f"{far[1]}, from ['c2p', 'p2c'] by more than 0.1:", far[2] > 0.1)
print("['C2P', 'P2C']: in the other order, a token's output differs by less than 1e-5:", order < 1e-5)
print("warnings:", len(caught))
assert far[0] == far[1] == 0 and far[2] > 0.1 and order < 1e-5 and not caught
EOF
"$folder/env/bin/python" "$folder/try.py" 2>/dev/null
