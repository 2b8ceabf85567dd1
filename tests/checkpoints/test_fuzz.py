"""Fuzzing of damaged files: an error or a right load, never anything else, and in little memory."""

import importlib.util
import json
import random
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.files.json_file import read_json_object
from keras_bert_layers.checkpoints.files.safetensors_file import SafetensorsFile
from keras_bert_layers.checkpoints.files.tensor_file import FLOAT_DTYPES
from keras_bert_layers.checkpoints.google.directory import GoogleDirectory
from keras_bert_layers.checkpoints.huggingface.directory import HuggingFaceDirectory
from keras_bert_layers.checkpoints.huggingface.tokenizer.json_file import TokenizerJson
from keras_bert_layers.checkpoints.huggingface.tokenizer.word_piece import word_piece_options
from keras_bert_layers.checkpoints.sentence_transformers.modules import sentence_encoder_options

FEWEST, FEW, MANY = 100, 300, 10_000
# The files take some 2 KB; Python's values and an error's text take more than the file.
MOST_BYTES = 2_000_000
LONGEST_ERROR = 5_000
TENSORS = {
    "a": np.arange(6, dtype="float32").reshape(2, 3),
    "b": np.arange(4, dtype="float16"),
    "c": np.arange(2, dtype="int64"),
    "d": np.zeros((0, 4), "float32"),
    "e": np.array(2.5),
}


@pytest.fixture(scope="session")
def mutations():
    spec = importlib.util.spec_from_file_location("mutations", Path(__file__).parent / "mutations.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fuzz(path, damage, read, *, count):
    """Writes `count` damaged files, each from its own seed, and reads them."""
    refused = longest = 0
    tracemalloc.start()
    try:
        for seed in range(count):
            path.write_bytes(damage(random.Random(seed)))
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)  # two files that contradict each other
                    read(path)
            except CheckpointError as error:
                refused += 1
                longest = max(longest, len(str(error)))
            except Exception as error:
                raise AssertionError(f"seed {seed}: {path.read_bytes()!r}") from error
            assert tracemalloc.get_traced_memory()[1] - before < MOST_BYTES, seed
    finally:
        tracemalloc.stop()
    assert longest < LONGEST_ERROR
    assert count // 10 < refused < count


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.exhaustive)])
def test_safetensors_headers(tmp_path, mutations, count):
    content = safetensors.numpy.save(TENSORS, {"format": "np"})
    start = 8 + int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8:start]), content[start:]

    def damage(rng):
        if rng.random() < 0.5:
            return mutations.damaged_bytes(rng, content[:start]) + data
        damaged = mutations.damaged_json(rng, header)
        return len(damaged).to_bytes(8, "little") + damaged + data

    def read(path):
        file = SafetensorsFile(path)
        found = {name: file.read(name) for name, info in file.infos.items() if info.dtype in FLOAT_DTYPES}
        if all(info.dtype in ("F32", "F16", "F64", "I64") for info in file.infos.values()):
            expected = safetensors.numpy.load(path.read_bytes())
            assert expected.keys() == file.infos.keys()
            for name, array in found.items():
                with np.errstate(over="ignore"):
                    np.testing.assert_array_equal(array, expected[name].astype("float32"))

    fuzz(tmp_path / "model.safetensors", damage, read, count=count)


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.exhaustive)])
def test_tokenizer_json(tmp_path, mutations, huggingface, count):
    template = huggingface.tokenizer_json()
    bert = {**template, "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}}

    def damage(rng):
        return mutations.damaged_json(rng, rng.choice((template, bert)))

    def read(path):
        tokenizer = TokenizerJson(path)
        tokens = tokenizer.vocabulary(("[UNK]",))
        vocabulary = json.loads(path.read_bytes())["model"]["vocab"]
        assert {token: index for index, token in enumerate(tokens) if token} == {
            t: i for t, i in vocabulary.items() if t
        }
        assert all(value in (True, False, None) for value in tokenizer.options.values())

    fuzz(tmp_path / "tokenizer.json", damage, read, count=count)


SHARD = "model-00001-of-00001.safetensors"
NOT_GOOGLES = ("architectures", "model_type", "layer_norm_eps", "pad_token_id")

# Written beside the complete checkpoint: the file, its values, and what reads it.
OTHERS = {
    "config.json": (None, lambda path: HuggingFaceDirectory(path.parent, owner="load_backbone").config),
    "bert_config.json": (None, lambda path: GoogleDirectory(path.parent, owner="load_backbone").config),
    "tokenizer_config.json": (
        {
            **{"do_lower_case": True, "strip_accents": None, "model_max_length": 512, "cls_token": "[CLS]"},
            **{"tokenizer_class": "BertTokenizer", "added_tokens_decoder": {"0": {"content": "[PAD]"}}},
        },
        lambda path: word_piece_options(path.parent, read_json_object(path)),
    ),
    "special_tokens_map.json": (
        {
            "cls_token": {"content": "[CLS]", "lstrip": False},
            "additional_special_tokens": ["[PAD]"],
            "sep_token": "[SEP]",
        },
        lambda path: word_piece_options(path.parent, {}),
    ),
    "modules.json": (None, lambda path: sentence_encoder_options(path.parent, hidden_dim=15)),
    "1_Pooling/config.json": (None, lambda path: sentence_encoder_options(path.parents[1], hidden_dim=15)),
    "model.safetensors.index.json": (None, lambda path: HuggingFaceDirectory(path.parent, owner="x").open_weights()),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_files(checkpoint, mutations, huggingface, name):
    huggingface.add_modules(checkpoint)
    (checkpoint / "vocab.txt").write_text("\n".join(huggingface.VOCABULARY), encoding="utf-8")
    tensors = dict.fromkeys(huggingface.shapes(huggingface.CONFIG), SHARD)
    (checkpoint / "model.safetensors").rename(checkpoint / SHARD)
    huggingface.write_json(checkpoint / "model.safetensors.index.json", {"metadata": {}, "weight_map": tensors})
    google = {key: value for key, value in huggingface.CONFIG.items() if key not in NOT_GOOGLES}
    huggingface.write_json(checkpoint / "bert_config.json", google)
    values, read = OTHERS[name]
    values = json.loads((checkpoint / name).read_bytes()) if values is None else values
    fuzz(checkpoint / name, lambda rng: mutations.damaged_json(rng, values), read, count=FEWEST)
