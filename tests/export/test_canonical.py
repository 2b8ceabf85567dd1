"""Equal models are equal bytes, whatever a process has done before."""

import subprocess
import sys
from pathlib import Path

import pytest

EXPORT = """
import sys
import keras, tensorflow as tf
import keras_bert_layers as kbl
from keras_bert_layers.preprocessing import SpanPreprocessor
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "film"]
tokenizer = kbl.BertTokenizer(words)
if sys.argv[1] == "busy":
    for number in range(3):
        tf.function(lambda x: x + number)(tf.constant(1.0))
keras.utils.set_random_seed(3)
config = kbl.BertConfig(vocabulary_size=7, hidden_dim=6, num_layers=1, num_heads=2, intermediate_dim=7)
kbl.BertQuestionAnswerer(kbl.BertBackbone(config), SpanPreprocessor(tokenizer, 9, stride=2)).export(sys.argv[1])
"""


@pytest.mark.slow
def test_two_processes(tmp_path):
    for name, seed in (("idle", "1"), ("busy", "2")):
        command = [sys.executable, "-c", EXPORT, name]
        environment = {"PYTHONHASHSEED": seed, "TF_CPP_MIN_LOG_LEVEL": "2", "PATH": ""}
        finished = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert finished.returncode == 0, finished.stderr[-3000:]
    idle, busy = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "idle", tmp_path / "busy")
    )
    assert set(idle) == set(busy)
    assert {str(name) for name, content in idle.items() if busy[name] != content} == set()
    assert Path("fingerprint.pb") in idle
