"""Hostile directories: nothing run, and no file read outside of them.

What single readers refuse is in their own tests: pickles in test_torch_file.py, links out of an HDF5 file in
test_hdf5_file.py, shards of other folders in test_tensor_views.py, archives in test_keras_file.py.
"""

import json

import pytest
from safetensors.numpy import load_file, save_file

from keras_bert_layers import load_backbone, load_tokenizer
from keras_bert_layers.checkpoints import CheckpointError

WEIGHTS = "model.safetensors"


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
@pytest.mark.parametrize("key", ["auto_map", "trust_remote_code"])
def test_code_that_a_checkpoint_names_is_never_run(checkpoint, files_stay, file, key):
    """transformers imports `harm.py` of the directory where a user allows it; here nothing can allow it."""
    (checkpoint / "harm.py").write_text("open('escaped', 'w')\n", encoding="utf-8")
    path = checkpoint / file
    content = json.loads(path.read_text()) if path.is_file() else {"tokenizer_class": "BertTokenizer"}
    content[key] = {"AutoModel": "harm.Harm", "AutoTokenizer": ["harm.Harm", None]} if key == "auto_map" else True
    path.write_text(json.dumps(content))
    load = load_backbone if file == "config.json" else load_tokenizer
    if file == "config.json" and key == "auto_map":
        with pytest.warns(UserWarning, match=r"`auto_map` names code of the checkpoint's own, which is never run"):
            load(checkpoint)
    else:
        load(checkpoint)
    assert not (checkpoint / "__pycache__").exists()


def test_an_index_that_names_a_file_elsewhere(checkpoint, tmp_path, files_stay):
    names = sorted(load_file(checkpoint / WEIGHTS))
    save_file(load_file(checkpoint / WEIGHTS), tmp_path / "elsewhere.safetensors")
    (checkpoint / WEIGHTS).unlink()
    for name in (
        "../elsewhere.safetensors",
        "../../../../../../../../etc/passwd",
        str(tmp_path / "elsewhere.safetensors"),
    ):
        index = {"weight_map": dict.fromkeys(names, name)}
        (checkpoint / f"{WEIGHTS}.index.json").write_text(json.dumps(index))
        with pytest.raises(CheckpointError, match="a shard must be a file of the same directory.*Do not trust"):
            load_backbone(checkpoint)
