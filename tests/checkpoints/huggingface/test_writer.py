"""`save_huggingface`: files, configs and tensors; tensor names are written out here, apart from the package's table."""

import json
import sys

import keras
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from keras_bert_layers import (
    BertBackbone,
    BertClassifier,
    BertDualEncoder,
    BertQuestionAnswerer,
    BertTokenClassifier,
    load_backbone,
    load_task,
    load_tokenizer,
    save_huggingface,
)
from keras_bert_layers.checkpoints import (
    CheckpointError,
    config_to_huggingface,
    load_report,
    save_google,
    save_kerashub,
)

# The package's attribute of this name is the function.
MODULE = sys.modules["keras_bert_layers.checkpoints.huggingface.writer"]
HIDDEN, SIZE = 15, 23
PREDICTIONS = {
    "cls.predictions.transform.dense.weight": (HIDDEN, HIDDEN),
    "cls.predictions.transform.dense.bias": (HIDDEN,),
    "cls.predictions.transform.LayerNorm.weight": (HIDDEN,),
    "cls.predictions.transform.LayerNorm.bias": (HIDDEN,),
    "cls.predictions.bias": (SIZE,),
}
NEXT_SENTENCE = {"cls.seq_relationship.weight": (2, HIDDEN), "cls.seq_relationship.bias": (2,)}
TOKENIZER_FILES = {"special_tokens_map.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"}
ENCODER_FILES = {"config_sentence_transformers.json", "modules.json", "sentence_bert_config.json"}


def classifier(num_classes):
    return {"classifier.weight": (num_classes, HIDDEN), "classifier.bias": (num_classes,)}


def labels(*names):
    return {
        "id2label": {str(number): name for number, name in enumerate(names)},
        "label2id": {name: number for number, name in enumerate(names)},
    }


# Kind of model -> class of transformers, tensors of the head, whether there is a pooler, more of config.json.
EXPECTED = {
    "backbone": ("BertModel", {}, True, {}),
    "classifier": (
        "BertForSequenceClassification",
        classifier(3),
        True,
        {
            "problem_type": "single_label_classification",
            "classifier_dropout": 0.25,
            **labels("bad", "good", "né"),
        },
    ),
    "unnamed_classifier": (
        "BertForSequenceClassification",
        classifier(5),
        True,
        {
            "problem_type": "single_label_classification",
            "classifier_dropout": 0.1,
            **labels("0", "1", "2", "3", "4"),
        },
    ),
    "multi_label_classifier": (
        "BertForSequenceClassification",
        classifier(4),
        True,
        {
            "problem_type": "multi_label_classification",
            "classifier_dropout": 0.1,
            **labels("a", "b", "c", "d"),
        },
    ),
    "regression": (
        "BertForSequenceClassification",
        classifier(1),
        True,
        {"problem_type": "regression", "classifier_dropout": 0.1, **labels("LABEL_0")},
    ),
    "token_classifier": (
        "BertForTokenClassification",
        classifier(4),
        False,
        {"classifier_dropout": 0.3, **labels("O", "B-place", "I-place", "B-née")},
    ),
    "question_answerer": (
        "BertForQuestionAnswering",
        {"qa_outputs.weight": (2, HIDDEN), "qa_outputs.bias": (2,)},
        False,
        {},
    ),
    "multiple_choice": ("BertForMultipleChoice", classifier(1), True, {"classifier_dropout": 0.35}),
    "masked_lm": ("BertForMaskedLM", PREDICTIONS, False, {}),
    "pretrainer": ("BertForPreTraining", {**PREDICTIONS, **NEXT_SENTENCE}, True, {}),
    "sentence_encoder": ("BertModel", {}, True, {}),
    "projected_sentence_encoder": ("BertModel", {}, True, {}),
    "dual_encoder": ("BertModel", {}, True, {}),
    "cross_encoder": (
        "BertForSequenceClassification",
        classifier(1),
        True,
        {
            "classifier_dropout": 0.05,
            "sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"},
            **labels("LABEL_0"),
        },
    ),
}
ENCODERS = ("sentence_encoder", "projected_sentence_encoder", "dual_encoder")


@pytest.fixture(scope="module")
def saved(our_models, tmp_path_factory):
    """A model of a kind and the directory that was written of it; each is made once."""
    made = {}

    def get(kind):
        if kind not in made:
            model = our_models.make(kind)
            made[kind] = model, save_huggingface(model, tmp_path_factory.mktemp(kind) / "saved")
        return made[kind]

    return get


def names(directory):
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", EXPECTED)
def test_tensors(saved, huggingface, kind):
    architecture, head, pooler, _ = EXPECTED[kind]
    _, directory = saved(kind)
    prefix = "" if architecture == "BertModel" else "bert."
    expected = {f"{prefix}{name}": shape for name, shape in huggingface.shapes(huggingface.CONFIG, pooler).items()}
    tensors = load_file(directory / "model.safetensors")
    assert {name: tensor.shape for name, tensor in tensors.items()} == {**expected, **head}
    assert {tensor.dtype for tensor in tensors.values()} == {np.dtype("float32")}
    with safe_open(directory / "model.safetensors", framework="np") as file:
        assert file.metadata() == {"format": "pt"}


@pytest.mark.parametrize("kind", EXPECTED)
def test_files_and_config(saved, kind):
    architecture, _, _, more = EXPECTED[kind]
    model, directory = saved(kind)
    files = {"config.json", "model.safetensors"}
    if kind != "backbone":
        files |= TOKENIZER_FILES
    if kind in ENCODERS:
        files |= {*ENCODER_FILES, "1_Pooling/config.json"}
    if kind == "projected_sentence_encoder":
        files |= {"2_Dense/config.json", "2_Dense/model.safetensors"}
    assert names(directory) == files
    config = (model if kind == "backbone" else model.backbone).config
    assert json.loads((directory / "config.json").read_text("utf-8")) == {
        "position_embedding_type": "absolute",  # without it, CTranslate2 4.8.5 converts no BERT
        "architectures": [architecture],
        **config_to_huggingface(config),
        "dtype": "float32",
        "pad_token_id": 0,
        **more,
    }


@pytest.mark.parametrize("kind", EXPECTED)
@pytest.mark.filterwarnings("ignore:.*has no pooler")
def test_back_bit_for_bit(saved, our_models, kind):
    model, directory = saved(kind)
    if kind == "backbone":
        again, options = load_backbone(directory), {}
    else:
        again = load_task(directory, kind if kind == "dual_encoder" else None)
        options = {
            "dual_encoder": {"symmetric", "temperature"},  # how it is trained
            "unnamed_classifier": {"class_names"},
        }.get(kind, set())
    assert type(again) is type(model)
    weights, read = our_models.weights(model), our_models.weights(again)
    pooler = () if EXPECTED[kind][2] else ("pooler/dense/kernel", "pooler/dense/bias")
    assert len(read) == len(weights)
    for (path, value), (name, other) in zip(weights.items(), read.items(), strict=True):
        if not path.endswith(pooler):
            np.testing.assert_array_equal(other, value, err_msg=name)
    assert len(load_report(again).fresh) == len(pooler)
    if kind == "backbone":
        assert again.config == model.config
        return
    before, after = model.get_config(), again.get_config()
    ignored = {"name", "backbone", "preprocessor", *options}
    assert {key: value for key, value in after.items() if key not in ignored} == {
        key: value for key, value in before.items() if key not in ignored
    }
    assert again.backbone.config == model.backbone.config
    assert again.preprocessor.tokenizer.get_config() == model.preprocessor.tokenizer.get_config()
    assert again.preprocessor.max_length == model.preprocessor.max_length


def test_minilm_bit_for_bit(minilm, tmp_path):
    """Real weights: from HuggingFace to here and back, the numbers have the same bits."""
    encoder = load_task(minilm)
    directory = save_huggingface(encoder, tmp_path / "minilm")
    before, after = (load_file(path / "model.safetensors") for path in (minilm, directory))
    before.pop("embeddings.position_ids")  # the numbers 0, 1, 2, ...
    assert after.keys() == before.keys()
    assert all(after[name].tobytes() == tensor.tobytes() for name, tensor in before.items())
    assert (directory / "vocab.txt").read_bytes() == (minilm / "vocab.txt").read_bytes()
    again = load_task(directory)
    assert again.backbone.config == encoder.backbone.config
    assert (again.pooling, again.normalize, again.preprocessor.max_length) == ("mean", True, 256)


def test_preprocessor_of_a_backbone(our_models, tmp_path):
    preprocessor = our_models.preprocessor(lowercase=False)
    directory = save_huggingface(BertBackbone(our_models.CONFIG), tmp_path / "x", preprocessor=preprocessor)
    assert names(directory) == {"config.json", "model.safetensors", *TOKENIZER_FILES}
    assert load_tokenizer(directory).get_config() == preprocessor.tokenizer.get_config()


def test_preprocessor_of_a_task_may_be_another(saved, our_models, tmp_path):
    model, _ = saved("classifier")
    directory = save_huggingface(model, tmp_path / "x", preprocessor=our_models.preprocessor(lowercase=False))
    assert load_tokenizer(directory).lowercase is False


def test_sentence_encoder_without_text(our_models, tmp_path):
    backbone = BertBackbone(our_models.CONFIG)
    directory = save_huggingface(our_models.MAKERS["sentence_encoder"](backbone, None), tmp_path / "x")
    assert "sentence_bert_config.json" not in names(directory)
    assert load_task(directory, preprocessor=None).pooling == "max"


def test_half_precision_is_written_as_float32(our_models, tmp_path):
    backbone = our_models.randomised(BertBackbone(our_models.CONFIG, dtype="bfloat16"))
    directory = save_huggingface(backbone, tmp_path / "x")
    read = our_models.weights(load_backbone(directory))
    for path, value in our_models.weights(backbone).items():
        np.testing.assert_array_equal(read[path], np.asarray(value, "float32"), err_msg=path)


def test_relative_path(our_models, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert str(save_huggingface(BertBackbone(our_models.CONFIG), "a/bert")) == "a/bert"
    assert names(tmp_path) == {"a/bert/config.json", "a/bert/model.safetensors"}


class TestWarnings:
    def test_tokenizer_of_google(self, our_models, tmp_path):
        preprocessor = our_models.preprocessor(reference="google")
        backbone = BertBackbone(our_models.CONFIG)
        with pytest.warns(UserWarning, match=r"follows Google's reference\. HuggingFace's gives other ids for a few"):
            save_huggingface(backbone, tmp_path / "x", preprocessor=preprocessor)

    @pytest.mark.parametrize(
        ("make", "text"),
        [
            (
                lambda backbone: BertClassifier(backbone, 3, problem_type="multi_label_classification", threshold=0.25),
                r"threshold=0\.25 is not written",
            ),
            (
                lambda backbone: BertQuestionAnswerer(backbone, no_answer_threshold=-1.5),
                r"no_answer_threshold=-1\.5 is not written, as HuggingFace's files have no setting for it",
            ),
            (
                lambda backbone: BertTokenClassifier(backbone, ["O", "B-a", "I-a"], scheme="iob1"),
                r"scheme='iob1' is not written",
            ),
            (
                lambda backbone: BertTokenClassifier(backbone, ["O", "B-a", "I-a"], aggregation="max"),
                r"aggregation='max' is not written",
            ),
        ],
    )
    def test_settings_that_are_lost(self, our_models, tmp_path, make, text):
        with pytest.warns(UserWarning, match=text):
            save_huggingface(make(BertBackbone(our_models.CONFIG)), tmp_path / "x")

    def test_two_longest_texts(self, our_models, tmp_path):
        documents = type(our_models.preprocessor())(our_models.preprocessor().tokenizer, max_length=16)
        model = BertDualEncoder(
            BertBackbone(our_models.CONFIG), preprocessor=our_models.preprocessor(), document_preprocessor=documents
        )
        with pytest.warns(UserWarning, match=r"longest query has 11 tokens and the longest document 16"):
            directory = save_huggingface(model, tmp_path / "x")
        assert load_task(directory).preprocessor.max_length == 16


class TestErrors:
    @pytest.fixture
    def path(self, tmp_path):
        """A place where nothing is written."""
        yield tmp_path / "x"
        assert list(tmp_path.iterdir()) == []

    def test_other_models(self, path):
        text = r"`save_huggingface`: `model` must be one of BertBackbone, BertClassifier, BertCrossEncoder, "
        with pytest.raises(TypeError, match=text):
            save_huggingface(keras.Sequential([keras.layers.Dense(1)]), path)

    def test_other_preprocessors(self, our_models, path):
        tokenizer = our_models.preprocessor().tokenizer
        with pytest.raises(TypeError, match=r"`preprocessor` must be a BertPreprocessor or None\. Received: "):
            save_huggingface(BertBackbone(our_models.CONFIG), path, preprocessor=tokenizer)

    def test_weights_beside_berts(self, our_models, path):
        backbone = BertBackbone(our_models.CONFIG)
        pooler = backbone.get_layer("pooler")
        pooler._tracker.unlock()
        pooler.add_weight(name="scale", shape=(3,))
        with pytest.raises(ValueError, match=r"`model` must have BERT's own weights and no others\..*scale"):
            save_huggingface(backbone, path)

    def test_pooling_of_a_classifier(self, our_models, path):
        model = BertClassifier(BertBackbone(our_models.CONFIG), 2, pooling="mean")
        for save in (save_huggingface, save_google, save_kerashub):
            with pytest.raises(ValueError, match=r"`save_.*`: `model\.pooling` must be None\..*\.keras"):
                save(model, path)

    @pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
    def test_nothing_is_left(self, our_models, path, monkeypatch, error):
        def fail(*args, **kwargs):
            raise error

        monkeypatch.setattr(MODULE, "write_safetensors", fail)
        with pytest.raises(error):
            save_huggingface(BertBackbone(our_models.CONFIG), path)

    def test_full_disk(self, our_models, path, monkeypatch):
        def fail(*args, **kwargs):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(MODULE, "write_safetensors", fail)
        with pytest.raises(CheckpointError, match=r"`save_huggingface`: `directory` must be on a disk with room"):
            save_huggingface(BertBackbone(our_models.CONFIG), path)

    def test_directory_in_the_way(self, saved):
        model, directory = saved("backbone")
        before = names(directory)
        with pytest.raises(CheckpointError, match=r"`directory` must be new, or an empty directory\..*Give another"):
            save_huggingface(model, directory)
        assert names(directory) == before
