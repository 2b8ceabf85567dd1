import dataclasses

import pytest

from keras_bert_layers import (
    BertBackbone,
    BertDualEncoder,
    BertMaskedLM,
    BertPreprocessor,
    BertTokenClassifier,
)
from keras_bert_layers.checkpoints.huggingface.writer import HuggingFaceForm
from keras_bert_layers.checkpoints.weights.table import Layout
from keras_bert_layers.checkpoints.written_model import WrittenModel


def huggingface_form(model):
    return HuggingFaceForm(WrittenModel(model, Layout.HUGGINGFACE, owner="save_huggingface"))


@pytest.fixture
def backbone(our_models):
    return BertBackbone(our_models.CONFIG)


def test_a_bare_encoder(backbone):
    form = huggingface_form(backbone)
    assert (form.architecture, form.values, len(form.rows)) == ("BertModel", {}, 39)


def test_a_subclass_is_what_it_extends(our_models):
    class Mine(BertMaskedLM):
        """A user's own."""

    form = huggingface_form(Mine(BertBackbone(our_models.CONFIG)))
    assert (form.architecture, len(form.rows)) == ("BertForMaskedLM", 37 + 5)


def test_other_objects(our_models):
    for other in (our_models.preprocessor(), None, BertPreprocessor):
        text = r"`save_huggingface`: `model` must be one of BertBackbone, .* Received: model="
        with pytest.raises(TypeError, match=text):
            huggingface_form(other)


def test_a_conditional_random_field(backbone):
    model = BertTokenClassifier(backbone, ["O", "B-x", "I-x"], crf=True)
    with pytest.raises(ValueError, match=r"must have no conditional random field\..*does not have its transitions"):
        huggingface_form(model)


def test_two_encoders(backbone, our_models):
    model = BertDualEncoder(backbone, BertBackbone(our_models.CONFIG))
    with pytest.raises(
        ValueError, match=r"must have one encoder for both sides\..*Save each side: `BertSentenceEncoder"
    ):
        huggingface_form(model)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"head_activation": "relu"}, r"`model\.head_activation` must be 'gelu_tanh' or None\. Received: .*'relu'"),
        ({"head_layer_norm_epsilon": 1e-5}, r"`model\.head_layer_norm_epsilon` must be 1e-07 or None"),
    ],
)
def test_a_head_of_its_own_kind(backbone, options, text):
    with pytest.raises(ValueError, match=text):
        huggingface_form(BertMaskedLM(backbone, **options))


def test_a_head_of_the_encoders_kind(backbone, our_models):
    config = our_models.CONFIG
    model = BertMaskedLM(backbone, head_activation=config.activation, head_layer_norm_epsilon=config.layer_norm_epsilon)
    assert huggingface_form(model).architecture == "BertForMaskedLM"


def test_a_narrower_embedding_is_refused_by_the_config(our_models, tmp_path):
    from keras_bert_layers import save_huggingface

    narrow = BertBackbone(dataclasses.replace(our_models.CONFIG, embedding_dim=7))
    with pytest.raises(ValueError, match=r"`embedding_dim` must be None for HuggingFace's BERT\. Received: "):
        save_huggingface(narrow, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []
