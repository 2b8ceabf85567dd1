"""Directories of multi-vector encoders: written, read, refused; those of PyLate."""

import json
import string

import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertMultiVectorEncoder, load_task, save_huggingface
from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.sentence_transformers.multi_vector_encoder import with_prefix_tokens

OPTIONS = {
    "projection_dim": 7,
    "query_length": 9,
    "document_length": 10,
    "query_expansion": "attended",
    "skiplist": (".", "film"),
    "prompts": {"query": "good : ", "document": "film "},
}


@pytest.fixture
def written(our_models, tmp_path):
    task = BertMultiVectorEncoder(BertBackbone(our_models.CONFIG), preprocessor=our_models.preprocessor(), **OPTIONS)
    task = our_models.randomised(task)
    return task, save_huggingface(task, tmp_path / "x")


def change(path, **values):
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **values}), "utf-8")


def test_read_back_bit_for_bit(our_models, written):
    task, directory = written
    again = load_task(directory)
    assert isinstance(again, BertMultiVectorEncoder)
    assert {name: getattr(again, name) for name in OPTIONS} == OPTIONS
    ours, theirs = (our_models.weights(model) for model in (task, again))
    assert [path for path in ours if not path.startswith("pooler") and (ours[path] != theirs[path]).any()] == []
    assert load_task(directory, query_expansion=None).query_expansion is None


def test_an_encoder_becomes_one(our_models, tmp_path):
    directory = save_huggingface(our_models.make("backbone"), tmp_path / "x", preprocessor=our_models.preprocessor())
    encoder = load_task(directory, "multi_vector_encoder", projection_dim=3)
    with pytest.warns(UserWarning, match="never trained|not trained"):
        assert encoder.predict(["a"], verbose=0).shape == (1, 3)


def test_pylate(our_models, pylate, tmp_path):
    plain = load_task(pylate(our_models, tmp_path / "plain"))
    assert (plain.query_expansion, plain.query_length, plain.prompts) == (None, None, None)
    assert plain.skiplist == tuple(string.punctuation)
    settings = {"query_prefix": "un", "document_prefix": "[MASK] ", "attend_to_expansion_tokens": True}
    other = load_task(pylate(our_models, tmp_path / "other", query_length=8, skiplist_words=["a"], **settings))
    assert (other.query_expansion, other.query_length, other.skiplist) == ("attended", 8, ("a",))
    assert other.prompts == {"query": "un", "document": "[MASK] "}
    tokenizer = other.preprocessor.tokenizer
    read = tokenizer.tokenize(["unhappy", "[MASK] a"]).to_list()
    assert [[tokenizer.id_to_token(token) for token in row] for row in read] == [["un", "##happy"], ["[MASK]", "a"]]


def test_prefixes_of_byte_level_tokenizers(written):
    change(written[1] / "config_sentence_transformers.json", query_prefix="[Q] ", document_prefix="[D] ")
    options = {
        "merges": [],
        "vocabulary": ["[Q] ", "[D] ", "x"],
        "special_tokens": ["x"],
        "added_tokens": ["[Q] ", "y"],
    }
    found = with_prefix_tokens(written[1], options)
    assert (found["special_tokens"], found["added_tokens"]) == (["x", "[Q] ", "[D] "], ["y"])


@pytest.mark.parametrize(
    ("file", "values", "message"),
    [
        ("1_Dense/config.json", {"bias": True}, "`bias` must be False"),
        ("1_Dense/config.json", {"use_residual": True}, "`use_residual` must be False"),
        ("1_Dense/config.json", {"activation_function": "torch.nn.modules.activation.Tanh"}, "must be 'linear'"),
        ("1_Dense/config.json", {"module_input_name": "sentence_embedding"}, "must be 'token_embeddings'"),
        ("1_Dense/config.json", {"in_features": 7}, "`in_features` must be 15"),
        ("1_Dense/config.json", {"out_features": 8}, "`out_features` must be the rows of"),
        ("2_MultiVectorMask/config.json", {"skiplist_tasks": ["query", "document"]}, "`skiplist_tasks` must be"),
        ("2_MultiVectorMask/config.json", {"keep_only_token_ids": [5]}, "`keep_only_token_ids` must be None"),
        ("2_MultiVectorMask/config.json", {"skiplist_words": [5]}, "`skiplist_words` must be strings"),
        ("sentence_bert_config.json", {"query_expansion": {"strategy": "min", "length": 9}}, "must be 'fixed'"),
        ("sentence_bert_config.json", {"query_expansion": {"strategy": "fixed"}}, "`query_length` must be an integer"),
        ("sentence_bert_config.json", {"query_expansion": [1]}, "`query_expansion` must be a JSON object"),
        ("sentence_bert_config.json", {"document_length": 2}, "`document_length` must be an integer of at least 3"),
        ("config_sentence_transformers.json", {"similarity_fn_name": "meanmaxsim"}, "must be 'maxsim'"),
        ("config_sentence_transformers.json", {"query_prefix": 3}, "`query_prefix` must be a string"),
        ("config_sentence_transformers.json", {"model_type": "ColBERT"}, "the modules must be Transformer, Dense"),
    ],
    ids=str,
)
def test_other_settings_are_refused(written, file, values, message):
    change(written[1] / file, **values)
    with pytest.raises(CheckpointError, match=message):
        load_task(written[1])


def test_other_modules_are_refused(written):
    kinds = ["Transformer", "Dense", "MultiVectorMask", "Normalize", "HierarchicalTokenPooling"]
    folders = ["", "1_Dense", "2_MultiVectorMask", "3_Normalize", ""]
    chain = [
        {"path": folder, "type": f"sentence_transformers.models.{kind}"}
        for kind, folder in zip(kinds, folders, strict=True)
    ]
    (written[1] / "modules.json").write_text(json.dumps(chain))
    with pytest.raises(CheckpointError, match="the modules must be .*Received.*'HierarchicalTokenPooling'"):
        load_task(written[1])


def test_the_weights_of_the_dense_layer(written):
    from safetensors.numpy import load_file

    (weight,) = load_file(written[1] / "1_Dense" / "model.safetensors").values()
    kernel = written[0].get_layer("query_encoder").get_layer("dense_projection").get_weights()[0]
    np.testing.assert_array_equal(weight, kernel.T)
