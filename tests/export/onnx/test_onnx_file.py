"""ONNX files with strings, run by ONNX Runtime, beside the tasks that they were written from."""

import contextlib
import errno
import importlib.util
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_bert_layers as kbl
from keras_bert_layers.export.onnx import onnx_file

pytestmark = pytest.mark.usefixtures("rules_once")
RUNTIME = Path(__file__).with_name("runtime.py")
TEXTS = ["a good film", "unhappy night, BAD film!", "", "film [MASK] " * 9, "Ünhappy\tnight"]


@pytest.fixture(scope="module")
def backbone(new_backbone):
    """One for all tasks of this file. The encoder has its own tests, of two blocks."""
    return new_backbone(num_layers=1)


@pytest.mark.parametrize("problem_type", ["single_label", "multi_label"])
@pytest.mark.parametrize("named", [True, False])
def test_classes(problem_type, named, backbone, preprocessor, check_onnx):
    names = ["bad", "gut", "schön"] if named else None
    task = kbl.BertClassifier(
        backbone,
        3,
        class_names=names,
        problem_type=f"{problem_type}_classification",
        threshold=[0.5, 0.1, 0.7] if named and problem_type == "multi_label" else None,
        preprocessor=preprocessor,
    )
    check_onnx(task)


@pytest.mark.parametrize("numbers", [1, 2])
def test_a_regression(numbers, backbone, preprocessor, check_onnx):
    task = kbl.BertClassifier(backbone, numbers, problem_type="regression", preprocessor=preprocessor)
    check_onnx(task)


@pytest.mark.parametrize("options", [{"pooling": "mean", "normalize": True}, {"pooling": ["cls", "max"]}], ids=str)
def test_classes_of_pooled_vectors(options, backbone, preprocessor, check_onnx):
    check_onnx(kbl.BertClassifier(backbone, 3, preprocessor=preprocessor, **options))


@pytest.mark.parametrize(
    "options",
    [
        {"pooling": "cls", "normalize": False},
        {"pooling": ["max", "mean_sqrt_len_tokens"], "truncate_dim": 7},
        {"projection_dim": [6, 5], "projection_activation": ["tanh", "linear"]},
        {"prompts": {"query": "film night "}, "default_prompt": "query"},
    ],
    ids=str,
)
def test_a_sentence_encoder(options, backbone, preprocessor, check_onnx):
    check_onnx(kbl.BertSentenceEncoder(backbone, preprocessor=preprocessor, **options))


@pytest.mark.parametrize("padding", ["max_length", "bucket"])
def test_other_paddings_give_the_same(padding, backbone, tokenizer, check_onnx):
    preprocessor = kbl.BertPreprocessor(tokenizer, max_length=9, padding=padding)
    check_onnx(kbl.BertClassifier(backbone, 2, preprocessor=preprocessor))


class TestRefused:
    def refused(self, task, path, rule, **options):
        with pytest.raises((ValueError, ModuleNotFoundError), match=rule):
            task.export(path / "model.onnx", format="onnx", **options)
        assert not list(path.iterdir())

    def test_no_preprocessor(self, backbone, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "onnx", None)  # which would not help
        self.refused(kbl.BertClassifier(backbone, 2), tmp_path, "BertPreprocessor of a BertTokenizer")

    def test_another_signature(self, backbone, preprocessor, tmp_path):
        task = kbl.BertClassifier(backbone, 2, preprocessor=preprocessor)
        self.refused(task, tmp_path, r"signatures.*\['serving_default'\].*'n_best'", signatures=["n_best"])
        self.refused(task, tmp_path, "at most one signature", signatures=["tokenize", "token_ids"])

    def test_parts_that_only_keras_can_compute(self, backbone, preprocessor, tmp_path):
        class Layer(keras.layers.Layer):
            def call(self, hidden):
                return hidden

        class Turned(kbl.layers.Positions):
            def rotated(self, heads):
                return -heads

        for part, rule in (({"feed_forward": Layer()}, "GatedFeedForward"), ({"positions": Turned()}, "rotated")):
            other = kbl.BertBackbone(backbone.config, parts=kbl.layers.EncoderParts(**part))
            self.refused(kbl.BertClassifier(other, 2, preprocessor=preprocessor), tmp_path, rule)

    def test_pairs_of_an_encoder_of_one_segment(self, new_backbone, preprocessor, tmp_path):
        task = kbl.BertClassifier(new_backbone(num_segments=1), 2, preprocessor=preprocessor, pairs=True)
        self.refused(task, tmp_path, "two segments")

    def test_quantized_layers(self, new_backbone, preprocessor, tmp_path):
        task = kbl.BertClassifier(new_backbone(num_layers=1), 2, preprocessor=preprocessor)
        task.quantize("int8")
        self.refused(task, tmp_path, "quantized.*int8")

    def test_added_tokens_that_normalization_may_change(self, backbone, vocabulary, tmp_path):
        """Their characters are not of ASCII: what becomes of them depends on the characters around them."""
        words = [*vocabulary[:-1], "naïve"]
        tokenizer = kbl.BertTokenizer(words, reference="huggingface", added_tokens=["naïve"])
        task = kbl.BertClassifier(backbone, 2, preprocessor=kbl.BertPreprocessor(tokenizer, max_length=9))
        self.refused(task, tmp_path, r"added_tokens.*\['naïve'\]")

    @pytest.mark.parametrize("options", [{"dtype": "bfloat16"}, {"version": 1}, {"max_bytes": 15}], ids=str)
    def test_options(self, options, backbone, preprocessor, tmp_path):
        task = kbl.BertClassifier(backbone, 2, preprocessor=preprocessor)
        self.refused(task, tmp_path, next(iter(options)), **options)

    def test_another_suffix(self, backbone, preprocessor, tmp_path):
        with pytest.raises(ValueError, match=r"end with '\.onnx'"):
            kbl.BertClassifier(backbone, 2, preprocessor=preprocessor).export(tmp_path / "model", format="onnx")

    def test_without_the_package(self, backbone, preprocessor, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "onnx", None)
        self.refused(kbl.BertClassifier(backbone, 2, preprocessor=preprocessor), tmp_path, r"\[onnx\]")


def test_the_file_describes_its_tokens_and_itself(backbone, preprocessor, tmp_path, ask):
    onnx = pytest.importorskip("onnx")
    task = kbl.BertClassifier(backbone, class_names=["bad", "good"], preprocessor=preprocessor)
    path = task.export(tmp_path / "model.onnx", format="onnx")
    wanted = np.asarray(preprocessor(TEXTS)["padding_mask"]).sum(axis=1)
    assert ask(path, TEXTS)["num_tokens"].tolist() == wanted.tolist()
    assert ask(path, TEXTS[:1])["num_tokens"].tolist() == wanted[:1].tolist()
    (told,) = onnx.load(path).metadata_props
    card = json.loads(told.value)
    assert (told.key, card["task"]) == ("model_card", "BertClassifier")
    assert (card["options"]["class_names"], card["preprocessing"]["max_length"]) == (["bad", "good"], 9)


def test_no_texts_and_bytes(backbone, preprocessor, tmp_path, ask):
    """Zero rows name their cause. The runtime writes bytes of an array of objects as Python shows them: the guide."""
    pytest.importorskip("onnx")
    task = kbl.BertClassifier(backbone, 2, preprocessor=preprocessor)
    path = task.export(tmp_path / "model.onnx", format="onnx")
    with pytest.raises(RuntimeError, match="the input must hold at least one text"):
        ask(path, [])
    assert ask(path, [b"good"])["num_tokens"].tolist() == ask(path, ["b'good'"])["num_tokens"].tolist()


def test_equal_tasks_are_equal_bytes(backbone, preprocessor, tmp_path, known_rules):
    pytest.importorskip("onnx")
    task = kbl.BertSentenceEncoder(backbone, preprocessor=preprocessor)
    first = task.export(tmp_path / "a.onnx", format="onnx")
    known_rules.clear()  # the second file's are made anew
    second = task.export(tmp_path / "b.onnx", format="onnx")
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="on Linux alone, a library's functions serve another library")
def test_tensorflow_first_is_an_error_that_states_the_order(backbone, preprocessor, tmp_path):
    for package in ("onnx", "onnxruntime_extensions"):
        pytest.importorskip(package)
    path = kbl.BertClassifier(backbone, 2, preprocessor=preprocessor).export(tmp_path / "model.onnx", format="onnx")
    program = f"import tensorflow, runpy; runpy.run_path({str(RUNTIME)!r}, run_name='__main__')"
    request = pickle.dumps((path.read_bytes(), {"text": np.array(TEXTS, object)}))
    found = subprocess.run([sys.executable, "-c", program], input=request, capture_output=True, check=True)
    assert "import onnxruntime_extensions before tensorflow" in str(pickle.loads(found.stdout))


def test_weights_of_a_large_model_are_in_a_file_beside_it(backbone, preprocessor, tmp_path, monkeypatch):
    onnx = pytest.importorskip("onnx")
    monkeypatch.setattr(onnx_file, "MAX_BYTES", 1000)
    monkeypatch.setattr(onnx_file, "_LEAST_MOVED", 256)
    task = kbl.BertSentenceEncoder(backbone, preprocessor=preprocessor)
    path = task.export(tmp_path / "model.onnx", format="onnx")
    data = tmp_path / "model.onnx.data"
    assert sorted(tmp_path.iterdir()) == [path, data]
    moved = onnx.load(path, load_external_data=False).graph.initializer
    assert sum(tensor.data_location == tensor.EXTERNAL for tensor in moved) > 3
    whole = onnx.load(path)
    monkeypatch.undo()
    assert path.stat().st_size < task.export(tmp_path / "small.onnx", format="onnx").stat().st_size
    small = onnx.load(tmp_path / "small.onnx")
    for ours, theirs in zip(whole.graph.initializer, small.graph.initializer, strict=True):
        if ours.data_type != onnx.TensorProto.STRING:
            assert np.array_equal(onnx.numpy_helper.to_array(ours), onnx.numpy_helper.to_array(theirs))


@pytest.fixture
def two_files(backbone, preprocessor, tmp_path, monkeypatch):
    """A task with other weights than in its export, the path of that, and the content of the two files."""
    pytest.importorskip("onnx")
    monkeypatch.setattr(onnx_file, "MAX_BYTES", 1000)
    task = kbl.BertSentenceEncoder(backbone, preprocessor=preprocessor)
    path = task.export(tmp_path / "model.onnx", format="onnx")
    task.set_weights([weight + 1 for weight in task.get_weights()])
    return task, path, {file.name: file.read_bytes() for file in tmp_path.iterdir()}


def test_of_two_files_both_are_replaced_or_none(two_files, tmp_path, monkeypatch):
    task, path, before = two_files

    def write_bytes(file, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full:
        full.setattr(Path, "write_bytes", write_bytes)
        with pytest.raises(OSError, match="disk with room for it.*No space left on device"):
            task.export(path, format="onnx")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    task.export(path, format="onnx")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} != before


def test_a_full_disk_of_temporary_files_is_named(backbone, preprocessor, tmp_path, monkeypatch):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")

    def save_model(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(onnx, "save_model", save_model)
    task = kbl.BertClassifier(backbone, 2, preprocessor=preprocessor)
    with pytest.raises(OSError, match="`export`: `TMPDIR` must be on a disk with room for it.*No space left on device"):
        task.export(tmp_path / "model.onnx", format="onnx", dtype="int8")
    assert not list(tmp_path.iterdir())


def test_where_nothing_can_be_written_nothing_is_made(backbone, preprocessor, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("keras_bert_layers._internal.files.disk_space.tempfile.TemporaryFile", refuse)
    monkeypatch.setattr(onnx_file, "_model", lambda *_: pytest.fail("the model was made"))
    task = kbl.BertClassifier(backbone, 2, preprocessor=preprocessor)
    with pytest.raises(PermissionError, match="`export`: `filepath` must be a path that can be written to"):
        task.export(tmp_path / "model.onnx", format="onnx")


@pytest.mark.parametrize("works", [True, False])
def test_an_old_model_is_never_beside_new_weights(works, two_files, tmp_path, monkeypatch):
    """A process may be killed after each rename; ONNX Runtime would read such a pair without an error."""
    task, path, before = two_files
    replace, seen = os.replace, []

    def noted(source, target):
        if not works:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        replace(source, target)
        seen.append({file.name for file in tmp_path.iterdir() if file.is_file()})

    monkeypatch.setattr(os, "replace", noted)
    with contextlib.nullcontext() if works else pytest.raises(OSError, match="What was there is unchanged"):
        task.export(path, format="onnx")
    assert seen == ([{"model.onnx.data"}, {*before}] if works else [])
    assert (before == {file.name: file.read_bytes() for file in tmp_path.iterdir()}) is not works


@pytest.mark.skipif(sys.platform != "linux", reason="measures as Linux does")
def test_what_is_cut_off_takes_little_memory(backbone, preprocessor, tmp_path):
    """In a process of its own: the peak of this one may be higher."""
    pytest.importorskip("onnx")
    if importlib.util.find_spec("onnxruntime_extensions") is None:
        pytest.skip("the extra `onnx` brings it")
    path = kbl.BertSentenceEncoder(backbone, preprocessor=preprocessor).export(tmp_path / "model.onnx", format="onnx")
    program = """
import pathlib, sys
sys.modules["onnx"] = None  # with it, onnxruntime-extensions imports torch
import numpy as np
import onnxruntime
from onnxruntime_extensions import get_library_path
options = onnxruntime.SessionOptions()
options.register_custom_ops_library(get_library_path())
session = onnxruntime.InferenceSession(sys.argv[1], options)
def peak(text):
    *_, cut = session.run(["bytes_cut"], {"text": np.array([text, "b"], object)})
    assert cut.tolist() == [max(len(text.encode()) - 100_000, 0), 0], cut
    return int(pathlib.Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) // 1024
print(-peak("a") + peak("a\u00e9\u6f22\u0301" * 400_000))
"""
    command = [sys.executable, "-c", program, path]
    assert int(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout) < 150  # MB


def test_every_constant_is_read(backbone, preprocessor, tmp_path):
    """ONNX Runtime warns of others."""
    onnx = pytest.importorskip("onnx")

    def reads(graph):
        names = {name for node in graph.node for name in node.input}
        return names.union(*(reads(part.g) for node in graph.node for part in node.attribute))

    task = kbl.BertClassifier(backbone, 2, preprocessor=preprocessor)
    graph = onnx.load(task.export(tmp_path / "model.onnx", format="onnx")).graph
    assert {constant.name for constant in graph.initializer} <= reads(graph)
