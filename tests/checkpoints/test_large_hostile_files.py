"""Files made to cost time and memory: each is refused, or read, within 10 CPU seconds and 1 GB."""

import json
import os
import resource
import struct
import sys
import traceback
import warnings
import zipfile

import numpy as np
import pytest
from safetensors.numpy import save_file

from keras_bert_layers import load_backbone, load_task, load_tokenizer
from keras_bert_layers._internal.files.wire_format import field
from keras_bert_layers.checkpoints import CheckpointError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not hasattr(os, "fork") or sys.platform == "darwin", reason="needs fork, and kilobytes of Linux"
    ),
]
CPU_SECONDS, GIGABYTE = 10, 1024 * 1024  # the memory in kilobytes, as Linux reports it
MILLION = 1_000_000


def config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def keras_file(content):
    def write(folder):
        with zipfile.ZipFile(folder / "x.keras", "w") as archive:  # stored, so that it does not expand at all
            archive.writestr("config.json", content)
            archive.writestr("model.weights.h5", b"")
        return load_task, folder / "x.keras"

    return write


def pickle(content):
    def write(folder):
        (folder / "model.safetensors").unlink()
        (folder / "pytorch_model.bin").write_bytes(content)
        return load_backbone, folder

    return write


def changed_config(**changes):
    def write(folder):
        config(folder, **changes)
        return load_backbone, folder

    return write


def file(name, content, load=load_backbone):
    """A file of the directory replaced, or added."""

    def write(folder):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return load, folder

    return write


def sentence_piece(pieces):
    def write(folder):
        config(folder, model_type="xlm-roberta")
        (folder / "vocab.txt").unlink(missing_ok=True)
        (folder / "sentencepiece.bpe.model").write_bytes(b"".join(pieces))
        return load_tokenizer, folder

    return write


def safetensors(header):
    return file("model.safetensors", struct.pack("<Q", len(header)) + header.encode())


def shard_index(content):
    def write(folder):
        (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
        (folder / "model.safetensors.index.json").write_text(content)
        return load_backbone, folder

    return write


def adapter(patterns):
    def write(folder):
        module = "base_model.model.encoder.layer.0.attention.self.query.lora_"
        tensors = {f"{module}A.weight": np.ones((2, 15), "f4"), f"{module}B.weight": np.ones((15, 2), "f4")}
        save_file(tensors, folder / "adapter_model.safetensors")
        values = {"peft_type": "LORA", "r": 2, "rank_pattern": dict.fromkeys(patterns, 2)}
        (folder / "adapter_config.json").write_text(json.dumps(values))
        return load_backbone, folder

    return write


def word_piece_json(vocabulary):
    values = {"model": {"type": "WordPiece", "vocab": vocabulary}, "added_tokens": []}
    return file("tokenizer.json", json.dumps(values), load_tokenizer)


def byte_level(vocabulary="{}", merges=""):
    """A directory of RoBERTa's tokenizer; None for a file without an end."""

    def write(folder):
        config(folder, model_type="roberta")
        (folder / "vocab.txt").unlink(missing_ok=True)
        for name, content in (("vocab.json", vocabulary), ("merges.txt", merges)):
            (folder / name).symlink_to("/dev/zero") if content is None else (folder / name).write_text(content)
        return load_tokenizer, folder

    return write


def byte_level_json(vocabulary, merges):
    model = {"type": "BPE", "vocab": vocabulary, "merges": merges}
    return file("tokenizer.json", json.dumps({"model": model}), load_tokenizer)


def modern(layers):
    values = {"model_type": "modernbert", "hidden_activation": "gelu", "norm_eps": 1e-5, "num_hidden_layers": layers}
    return changed_config(**values, layer_types=["full_attention"] + ["sliding_attention"] * (layers - 1))


def long_module(length):
    def write(folder):
        adapter(["dense"])(folder)
        name = "base_model.model." + "a" * length
        tensors = {f"{name}.lora_{kind}.weight": np.ones((2, 2), "f4") for kind in "AB"}
        save_file(tensors, folder / "adapter_model.safetensors")
        return load_backbone, folder

    return write


def numbered(count):
    return {f"w{index}": index for index in range(count)}


def piece(text):
    return field(1, field(1, text) + field(2, 0))


TENSOR = '"{}":{{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
FILES = {
    "objects in .keras": lambda: keras_file("[" + "{}," * (10 * MILLION) + "{}]"),
    "lists in .keras": lambda: keras_file("[" * MILLION),
    "marks in a pickle": lambda: pickle(b"\x80\x02" + b"(" * (30 * MILLION) + b"."),
    "zeros as a pickle": lambda: pickle(bytes(30 * MILLION)),
    "layers": lambda: changed_config(num_hidden_layers=MILLION),
    "widths": lambda: changed_config(hidden_size=3 * 10**9, intermediate_size=10**9),
    "tokens": lambda: changed_config(vocab_size=10**9),
    "unknown keys": lambda: changed_config(**{f"key_{index}": index for index in range(MILLION)}),
    "lines of a vocabulary": lambda: file("vocab.txt", "\n" * (15 * MILLION), load_tokenizer),
    "a long line": lambda: file("vocab.txt", "a" * (30 * MILLION), load_tokenizer),
    "words in tokenizer.json": lambda: word_piece_json({f"w{index}": index for index in range(2 * MILLION)}),
    "objects in tokenizer.json": lambda: file("tokenizer.json", "[" + "{}," * (10 * MILLION) + "{}]", load_tokenizer),
    "digits in config.json": lambda: file("config.json", "[" + "9" * (30 * MILLION) + "]"),
    "empty pieces": lambda: sentence_piece([piece(b"")] * (5 * MILLION)),
    "a long piece": lambda: sentence_piece([piece(b"<unk>"), piece(b"a" * 300_000)]),
    "a piece of 30 MB": lambda: sentence_piece([piece(b"a" * (30 * MILLION))]),
    "modules": lambda: file("modules.json", json.dumps([{"type": "sentence_transformers.x.Dense"}] * 900_000)),
    "shards": lambda: shard_index(json.dumps({"weight_map": {f"t{n}": f"{n}.safetensors" for n in range(900_000)}})),
    "tensors": lambda: safetensors("{" + ",".join(TENSOR.format(f"t{index}") for index in range(120_000)) + "}"),
    "a long header": lambda: safetensors("{" + " " * (30 * MILLION) + "}"),
    "patterns": lambda: adapter([f"a{index}.*b" for index in range(300_000)]),
    "a thousand patterns": lambda: adapter([f"a{index}.*b" for index in range(1000)]),
    "a pattern that takes for ever": lambda: adapter(["(a*)*" * 40 + "b"]),
    "a long module": lambda: long_module(MILLION // 5),
    "layers of ModernBERT": lambda: modern(MILLION),
    "positions of ModernBERT": lambda: changed_config(
        model_type="modernbert", hidden_activation="gelu", norm_eps=1e-5, max_position_embeddings=10**9
    ),
    "layers of MPNet": lambda: changed_config(model_type="mpnet", num_hidden_layers=MILLION),
    "tokens of MPNet": lambda: changed_config(model_type="mpnet", vocab_size=10**9),
    "bytes of vocab.json": lambda: byte_level(json.dumps(numbered(2 * MILLION))),
    "tokens of vocab.json": lambda: byte_level(json.dumps(numbered(MILLION // 2))),
    "vocab.json without an end": lambda: byte_level(None),
    "merges.txt without an end": lambda: byte_level(merges=None),
    "lines of merges.txt": lambda: byte_level(merges="a b\n" * (8 * MILLION)),
    "many lines of merges.txt": lambda: byte_level(merges="a b\n" * (3 * MILLION)),
    "tokens of BPE in tokenizer.json": lambda: file(
        "tokenizer.json",
        json.dumps({"model": {"type": "BPE", "vocab": numbered(MILLION), "merges": []}}),
        load_tokenizer,
    ),
    "merges in tokenizer.json": lambda: file(
        "tokenizer.json",
        json.dumps({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"] * (4 * MILLION)}}),
        load_tokenizer,
    ),
    "a long pattern": lambda: adapter(["(a|" * MILLION]),
}
# What nothing reads changes nothing.
LOADS = ("unknown keys", "a thousand patterns")


def cost(action):
    """CPU seconds and kilobytes of a function in a process of its own, beyond what that has when it begins."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (3 * CPU_SECONDS, 3 * CPU_SECONDS))
        code = 3
        try:
            code = action()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status, usage = os.wait4(child, 0)
    return status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss - before


@pytest.mark.parametrize("name", FILES)
def test_cost(name, checkpoint):
    load, source = FILES[name]()(checkpoint)

    def action():
        try:
            warnings.simplefilter("ignore")
            load(source)
        except CheckpointError as error:
            sys.stderr.write(f"{str(error)[:300]}\n")
            return 1
        return 2

    status, seconds, kilobytes = cost(action)
    assert os.WIFEXITED(status), f"ended by signal {os.WTERMSIG(status)}"
    assert os.WEXITSTATUS(status) == (2 if name in LOADS else 1)
    assert seconds < CPU_SECONDS
    assert kilobytes < GIGABYTE
