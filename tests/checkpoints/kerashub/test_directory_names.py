import numpy as np
import pytest

from keras_bert_layers.checkpoints import config_from_kerashub
from keras_bert_layers.checkpoints.kerashub.directory import ignored_reason, stored_paths, table_name
from keras_bert_layers.checkpoints.weights.table import CLASSIFIER_ROWS, MASKED_LM_ROWS, backbone_rows

HEADS = {"backbone": (), "classifier": CLASSIFIER_ROWS, "masked_lm": MASKED_LM_ROWS, "text_embedder": ()}
QUERY = "model.weights.h5/layers/transformer_encoder{}/_self_attention_layer/query_dense/vars/0"


@pytest.fixture(scope="module", params=HEADS)
def case(request, kerashub, tmp_path_factory):
    """A model of KerasHub, the head's rows of our table, and what KerasHub writes of the model."""
    model = getattr(kerashub, request.param)()
    return model, HEADS[request.param], kerashub.save(model, tmp_path_factory.mktemp("preset"))


def test_the_table_has_a_row_for_every_weight_of_kerashub_and_no_other(case, kerashub):
    model, head, _ = case
    config = config_from_kerashub({"class_name": "BertBackbone", "config": kerashub.SIZES})
    names = [row.kerashub.name for row in (*backbone_rows(config), *head)]
    assert len(names) == len(set(names))
    assert set(names) == set(kerashub.weights(model))


def test_every_weight_lies_at_its_place_in_kerashubs_files(case, kerashub):
    model, _, directory = case
    places, stored = stored_paths(kerashub.SIZES["num_layers"]), kerashub.stored(directory)
    weights = kerashub.weights(model)
    for name, weight in weights.items():
        np.testing.assert_array_equal(stored[places[name]], weight, err_msg=name)
    rest = set(stored) - {places[name] for name in weights}
    assert {ignored_reason(name) for name in rest} <= {"the optimizer's state"}


def test_names_of_a_file(case, kerashub):
    model, _, directory = case
    stored = kerashub.stored(directory)
    names = {table_name(path, num_layers=kerashub.SIZES["num_layers"]) for path in stored}
    assert len(names) == len(stored)
    assert set(kerashub.weights(model)) <= set(names)


@pytest.mark.parametrize(
    "older",
    [
        QUERY.format("_1").replace("query_dense", "_query_dense"),
        QUERY.format("_1").replace("_self", "self"),
        QUERY.format("_1").replace("/layers/", "/_layer_checkpoint_dependencies/"),
    ],
)
def test_names_of_older_files(older):
    assert table_name(older, num_layers=2) == "transformer_layer_1/self_attention_layer/query/kernel"


def test_the_same_weight_twice():
    twice = [QUERY.format(""), QUERY.format("").replace("query_dense", "_query_dense")]
    assert len({table_name(path, num_layers=2) for path in twice}) == 1


def test_layers_that_the_config_does_not_have_keep_their_names():
    assert table_name(QUERY.format("_2"), num_layers=2) == QUERY.format("_2")
    assert ignored_reason(QUERY.format("_2")) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("logits/bias", "a classification head"),
        ("mlm_head/output_bias", "a masked language model's head"),
        ("task.weights.h5/optimizer/vars/12", "the optimizer's state"),
        ("model.weights.h5/layers/dropout/seed_generator/vars/0", "the state of a random number generator"),
        ("task.weights.h5/layers/dense_1/vars/0", None),
        ("model.weights.h5/optimizer/vars/0", None),
    ],
)
def test_what_may_be_left_out(name, reason):
    assert ignored_reason(name) == reason
