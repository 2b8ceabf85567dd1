"""ONNX files with strings, run by ONNX Runtime, beside the tasks that they were written from."""

import dataclasses
import json
import pickle
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_bert_layers as kbl
from keras_bert_layers.config import ACTIVATIONS
from keras_bert_layers.export.onnx._encoder_graph import quantized

RUNTIME = Path(__file__).with_name("runtime.py")
# Sums in another order, by another library, after two blocks.
TOLERANCE = 1e-5
TEXTS = ["a good film", "unhappy night, BAD film!", "", "film [MASK] " * 9, "Ünhappy\tnight"]


def same(answers, expected):
    assert [*answers] == [*(name for name in expected if name != "bytes_cut"), "num_tokens"]
    for name in set(answers) - {"num_tokens"}:
        found = answers[name]
        wanted = np.asarray(expected[name])
        if wanted.dtype.kind in "SO":
            assert found.tolist() == np.vectorize(bytes.decode, otypes=[object])(wanted).tolist()
        else:
            np.testing.assert_allclose(found, wanted, atol=TOLERANCE, rtol=0)


def exported(task, folder, ask):
    path = task.export(folder / "model.onnx", format="onnx")
    same(ask(path, TEXTS), task.serve(TEXTS))
    for text in TEXTS:  # one at a time too
        same(ask(path, [text]), task.serve([text]))


def widened(backbone):
    """The backbone with weights so large that answers differ."""
    for weight in backbone.trainable_weights:
        if "kernel" in weight.path:
            weight.assign(weight * 2)
    return backbone


@pytest.fixture
def new_backbone(backbone):
    def make(**changes):
        keras.utils.set_random_seed(3)
        return widened(kbl.BertBackbone(dataclasses.replace(backbone.config, **changes)))

    return make


@pytest.mark.parametrize("problem_type", ["single_label", "multi_label"])
@pytest.mark.parametrize("named", [True, False])
def test_classes(problem_type, named, new_backbone, preprocessor, tmp_path, ask):
    names = ["bad", "gut", "schön"] if named else None
    task = kbl.BertClassifier(
        new_backbone(),
        3,
        class_names=names,
        problem_type=f"{problem_type}_classification",
        preprocessor=preprocessor,
    )
    exported(task, tmp_path, ask)


@pytest.mark.parametrize("numbers", [1, 2])
def test_a_regression(numbers, new_backbone, preprocessor, tmp_path, ask):
    task = kbl.BertClassifier(new_backbone(), numbers, problem_type="regression", preprocessor=preprocessor)
    exported(task, tmp_path, ask)


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
def test_a_sentence_encoder(options, new_backbone, preprocessor, tmp_path, ask):
    exported(kbl.BertSentenceEncoder(new_backbone(), preprocessor=preprocessor, **options), tmp_path, ask)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(activation, new_backbone, preprocessor, tmp_path, ask):
    backbone = new_backbone(activation=activation, pooler_activation=activation, num_layers=1)
    exported(kbl.BertClassifier(backbone, 2, preprocessor=preprocessor), tmp_path, ask)


@pytest.mark.parametrize(
    "changes",
    [{"embedding_dim": 6}, {"num_segments": 0}, {"position_offset": 2}, {"layer_norm_epsilon": 0.1}],
    ids=str,
)
def test_forms_of_the_encoder(changes, new_backbone, preprocessor, tmp_path, ask):
    exported(kbl.BertSentenceEncoder(new_backbone(**changes), preprocessor=preprocessor), tmp_path, ask)


def test_lora_is_in_the_weights(new_backbone, preprocessor, tmp_path, ask):
    task = kbl.BertClassifier(new_backbone(), 2, preprocessor=preprocessor)
    task.backbone.enable_lora(2)
    for weight in task.backbone.trainable_weights:
        weight.assign(keras.random.normal(weight.shape, seed=1))
    exported(task, tmp_path, ask)


def test_weights_of_8_bits(new_backbone, preprocessor, tmp_path, ask):
    task = kbl.BertSentenceEncoder(new_backbone(hidden_dim=48, activation="relu"), preprocessor=preprocessor)
    paths = [task.export(tmp_path / f"{dtype}.onnx", format="onnx", dtype=dtype) for dtype in ("float32", "int8")]
    exact, rounded = (ask(path, TEXTS)["embedding"] for path in paths)
    assert (exact * rounded).sum(axis=1).min() > 0.99
    assert np.abs(exact - rounded).max() > 0
    with pytest.raises(ValueError, match="dtype.*int4"):
        task.export(tmp_path / "int4.onnx", format="onnx", dtype="int4")


def test_8_bits_are_the_nearest():
    kernel = np.random.default_rng(1).normal(size=(45, 7)).astype(np.float32)
    kernel[:32, 0] = 0
    numbers, scales = quantized(kernel)
    assert (numbers.shape, scales.shape) == ((7, 2, 32), (7, 2))
    found = ((numbers.astype(np.float32) - 128) * scales[..., None]).reshape(7, 64)[:, :45].T
    assert (np.abs(found - kernel) <= np.repeat(scales.T, 32, axis=0)[:45] * 0.5001).all()
    assert (numbers.reshape(7, 64)[:, 45:] == 128).all()


@pytest.mark.parametrize("padding", ["max_length", "bucket"])
def test_other_paddings_give_the_same(padding, new_backbone, tokenizer, tmp_path, ask):
    preprocessor = kbl.BertPreprocessor(tokenizer, max_length=9, padding=padding)
    exported(kbl.BertClassifier(new_backbone(), 2, preprocessor=preprocessor), tmp_path, ask)


class TestRefused:
    def refused(self, task, path, rule, **options):
        with pytest.raises((ValueError, ModuleNotFoundError), match=rule):
            task.export(path / "model.onnx", format="onnx", **options)
        assert not list(path.iterdir())

    def test_pairs(self, backbone, preprocessor, tmp_path):
        task = kbl.BertClassifier(backbone, 2, preprocessor=preprocessor, pairs=True)
        self.refused(task, tmp_path, r"take 'text' alone.*\['text', 'text_pair'\]")

    def test_no_preprocessor(self, backbone, tmp_path):
        self.refused(kbl.BertClassifier(backbone, 2), tmp_path, "take 'text' alone")

    def test_another_task(self, backbone, preprocessor, tmp_path):
        task = kbl.BertTokenClassifier(backbone, tag_names=["O", "B"], preprocessor=preprocessor)
        self.refused(task, tmp_path, "classifier or a sentence encoder.*BertTokenClassifier")

    def test_another_pooling(self, backbone, preprocessor, tmp_path):
        task = kbl.BertSentenceEncoder(backbone, pooling="lasttoken", preprocessor=preprocessor)
        self.refused(task, tmp_path, "pooling.*lasttoken")

    def test_parts_that_are_not_berts(self, backbone, preprocessor, tmp_path):
        other = kbl.BertBackbone(backbone.config, parts=kbl.layers.EncoderParts(causal=True))
        self.refused(kbl.BertClassifier(other, 2, preprocessor=preprocessor), tmp_path, "parts")

    def test_quantized_layers(self, new_backbone, preprocessor, tmp_path):
        task = kbl.BertClassifier(new_backbone(), 2, preprocessor=preprocessor)
        task.quantize("int8")
        self.refused(task, tmp_path, "quantized.*int8")

    def test_added_tokens_that_are_looked_for_after_normalization(self, backbone, vocabulary, tmp_path):
        tokenizer = kbl.BertTokenizer(vocabulary, reference="huggingface", added_tokens=["night"])
        task = kbl.BertClassifier(backbone, 2, preprocessor=kbl.BertPreprocessor(tokenizer, max_length=9))
        self.refused(task, tmp_path, r"added_tokens.*\['night'\]")

    @pytest.mark.parametrize("options", [{"dtype": "bfloat16"}, {"version": 1}, {"max_bytes": None}], ids=str)
    def test_options_of_saved_models(self, options, backbone, preprocessor, tmp_path):
        task = kbl.BertClassifier(backbone, 2, preprocessor=preprocessor)
        self.refused(task, tmp_path, next(iter(options)), **options)

    def test_another_suffix(self, backbone, preprocessor, tmp_path):
        with pytest.raises(ValueError, match=r"end with '\.onnx'"):
            kbl.BertClassifier(backbone, 2, preprocessor=preprocessor).export(tmp_path / "model", format="onnx")

    def test_without_the_package(self, backbone, preprocessor, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "onnx", None)
        self.refused(kbl.BertClassifier(backbone, 2, preprocessor=preprocessor), tmp_path, r"\[onnx\]")


def test_the_file_tells_of_its_tokens_and_of_itself(backbone, preprocessor, tmp_path, ask):
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


def test_equal_tasks_are_equal_bytes(backbone, preprocessor, tmp_path):
    pytest.importorskip("onnx")
    task = kbl.BertSentenceEncoder(backbone, preprocessor=preprocessor)
    files = [task.export(tmp_path / name, format="onnx").read_bytes() for name in ("a.onnx", "b.onnx")]
    assert files[0] == files[1]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="on Linux alone, a library's functions serve another library")
def test_tensorflow_first_is_an_error_that_says_so(backbone, preprocessor, tmp_path):
    for package in ("onnx", "onnxruntime_extensions"):
        pytest.importorskip(package)
    path = kbl.BertClassifier(backbone, 2, preprocessor=preprocessor).export(tmp_path / "model.onnx", format="onnx")
    program = f"import tensorflow, runpy; runpy.run_path({str(RUNTIME)!r}, run_name='__main__')"
    request = pickle.dumps((path.read_bytes(), np.array(TEXTS, object)))
    found = subprocess.run([sys.executable, "-c", program], input=request, capture_output=True, check=True)
    assert "import onnxruntime_extensions before tensorflow" in str(pickle.loads(found.stdout))
