"""Directories of sentence-transformers' `SparseEncoder`: written, read, refused; and masked language models."""

import dataclasses
import json

import numpy as np
import pytest
import safetensors.numpy

from keras_bert_layers import BertBackbone, BertSparseEncoder, load_task, save_huggingface
from keras_bert_layers.checkpoints import CheckpointError

OPTIONS = {
    "max_active_dims": 3,
    "pooling": "sum",
    "activation": "log1p_relu",
    "prompts": {"query": "good : ", "document": "film "},
    "default_prompt": "query",
}


@pytest.fixture
def written(our_models, tmp_path):
    task = BertSparseEncoder(BertBackbone(our_models.CONFIG), preprocessor=our_models.preprocessor(), **OPTIONS)
    task = our_models.randomised(task)
    return task, save_huggingface(task, tmp_path / "x")


def change(path, /, **values):
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **values}), "utf-8")


@pytest.mark.parametrize("tied", [True, False])
def test_read_back_bit_for_bit(our_models, tmp_path, tied):
    options = {**OPTIONS, "tie_weights": tied}
    task = BertSparseEncoder(BertBackbone(our_models.CONFIG), preprocessor=our_models.preprocessor(), **options)
    directory = save_huggingface(our_models.randomised(task), tmp_path / "x")
    again = load_task(directory)
    assert isinstance(again, BertSparseEncoder)
    assert {name: getattr(again, name) for name in options} == options
    ours, theirs = (our_models.weights(model) for model in (task, again))
    assert [path for path in ours if not path.startswith("pooler") and (ours[path] != theirs[path]).any()] == []
    # The encoder and the head are those of other tasks too.
    masked = load_task(directory, "masked_lm")
    np.testing.assert_array_equal(masked.get_layer("masked_lm_head").bias, task.get_layer("masked_lm_head").bias)


def test_a_masked_language_model_becomes_a_sparse_encoder(our_models, tmp_path, recwarn):
    masked = our_models.make("masked_lm")
    encoder = load_task(save_huggingface(masked, tmp_path / "x"), "sparse_encoder", pooling="sum")
    assert not recwarn.list
    heads = [model.get_layer("masked_lm_head").get_weights() for model in (masked, encoder)]
    for own, other in zip(*heads, strict=True):
        np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("form", ["5.4", "no pooling config", "stated by its modules"])
def test_forms_of_other_releases(written, form):
    directory = written[1]
    modules = directory / "modules.json"
    if form == "5.4":  # as 6.2 writes them
        kinds = ["base.modules.transformer.Transformer", "sparse_encoder.modules.splade_pooling.SpladePooling"]
        chain = json.loads(modules.read_text("utf-8"))
        chain = [{**module, "type": f"sentence_transformers.{kind}"} for module, kind in zip(chain, kinds, strict=True)]
        modules.write_text(json.dumps(chain))
        modality = {"text": {"method": "forward", "method_output_name": "logits"}}
        settings = {"transformer_task": "fill-mask", "modality_config": modality}
        change(directory / "sentence_bert_config.json", module_output_name="token_embeddings", **settings)
    elif form == "no pooling config":
        (directory / "1_SpladePooling" / "config.json").write_text("{}")
    else:
        (directory / "config_sentence_transformers.json").unlink()
    again = load_task(directory)
    assert (again.pooling, again.activation) == (
        ("max", "relu") if form == "no pooling config" else ("sum", "log1p_relu")
    )
    assert again.max_active_dims == (None if form == "stated by its modules" else 3)


@pytest.mark.parametrize(
    ("file", "values", "message"),
    [
        ("1_SpladePooling/config.json", {"pooling_strategy": "mean"}, "`pooling` must be one of"),
        ("1_SpladePooling/config.json", {"activation_function": ["relu"]}, "must be one of"),
        ("config_sentence_transformers.json", {"max_active_dims": 0}, "`max_active_dims` must be an integer"),
        ("sentence_bert_config.json", {"transformer_task": "feature-extraction"}, "must be 'fill-mask'"),
    ],
    ids=str,
)
def test_other_settings_are_refused(written, file, values, message):
    change(written[1] / file, **values)
    with pytest.raises(CheckpointError, match=message):
        load_task(written[1])


@pytest.fixture
def looked_up(our_models, tmp_path):
    options = {"query_weights": "frozen", "preprocessor": our_models.preprocessor()}
    size = options["preprocessor"].tokenizer.vocabulary_size()
    config = dataclasses.replace(our_models.CONFIG, vocabulary_size=size)
    task = our_models.randomised(BertSparseEncoder(BertBackbone(config), **options))
    task.get_layer("masked_lm_head").queries.set_weights([np.linspace(0, 2, size)])
    return task, save_huggingface(task, tmp_path / "x")


def test_more_weights_than_tokens_are_not_written(our_models, tmp_path):
    options = {"query_weights": "frozen", "preprocessor": our_models.preprocessor()}
    with pytest.raises(ValueError, match="must have as many tokens as the model, 23"):
        save_huggingface(BertSparseEncoder(BertBackbone(our_models.CONFIG), **options), tmp_path / "x")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("in_folders", [False, True])
def test_queries_that_no_encoder_reads(looked_up, our_models, in_folders):
    task, directory = looked_up
    if in_folders:  # as sentence-transformers writes it
        path, folder = directory / "router_config.json", "document_0_MLMTransformer"
        (directory / folder).mkdir()
        for file in directory.glob("*"):
            if file.is_file() and file.name not in ("modules.json", "config_sentence_transformers.json", path.name):
                file.rename(directory / folder / file.name)
        router = json.loads(path.read_text("utf-8"))
        types = {name or folder: kind for name, kind in router["types"].items()}
        structure = {side: [name or folder for name in names] for side, names in router["structure"].items()}
        change(path, types=types, structure=structure)
    again = load_task(directory)
    assert again.query_weights == "frozen"
    for encode in ("encode_queries", "encode_documents"):
        own, other = (getattr(model, encode)(our_models.TEXTS, verbose=0) for model in (task, again))
        np.testing.assert_array_equal(own.token_ids, other.token_ids)
        np.testing.assert_array_equal(own.weights, other.weights)


_QUERIES = "query_0_SparseStaticEmbedding"


@pytest.mark.parametrize(
    ("file", "values", "message"),
    [
        (f"{_QUERIES}/config.json", {"path": "idf.json"}, "(?s)`path` must be None.*writes them as a tensor"),
        (f"{_QUERIES}/config.json", {"frozen": "yes"}, "`frozen` must"),
        (f"{_QUERIES}/tokenizer.json", {"normalizer": None}, "`normalizer` must be that of the encoder's"),
        ("router_config.json", {"structure": {"query": ["../x"], "document": [""]}}, "must have the folders"),
        ("router_config.json", {"structure": {"query": 5, "document": [""]}}, "must have the folders.*'query': 5"),
        ("router_config.json", {"structure": {"query": [_QUERIES], "image": [""]}}, "of 'query' and 'document'"),
        ("router_config.json", {"structure": {"query": [_QUERIES]}}, r"Received: \['Router'\]"),
        (
            "router_config.json",
            {"types": {_QUERIES: "os.system", "": "x", "1_SpladePooling": "y"}},
            "must have the fold",
        ),
    ],
    ids=str,
)
def test_other_sides_are_refused(looked_up, file, values, message):
    change(looked_up[1] / file, **values)
    with pytest.raises(CheckpointError, match=message):
        load_task(looked_up[1])


def test_weights_of_queries_below_0_are_refused(looked_up, our_models):
    path = looked_up[1] / _QUERIES / "model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    safetensors.numpy.save_file({"weight": tensors["weight"] - 1}, path)
    with pytest.raises(CheckpointError, match="weights of queries must be at least 0"):
        load_task(looked_up[1])


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        (["Router"], r"Received: \['Router'\]. Load one encoder alone.*`document_0_Transformer`"),
        (["Transformer", "SpladePooling", "Normalize"], r"or Transformer, SpladePooling, .*Received: \['Transformer'"),
        (["Transformer", "Pooling", "SparseAutoEncoder"], "Received.*'SparseAutoEncoder'"),
    ],
    ids=str,
)
def test_other_modules_are_refused(written, kinds, message):
    chain = [{"path": "", "type": f"sentence_transformers.models.{kind}"} for kind in kinds]
    (written[1] / "modules.json").write_text(json.dumps(chain))
    with pytest.raises(CheckpointError, match=message):
        load_task(written[1])


def test_without_the_head(written, our_models, tmp_path):
    directory = save_huggingface(our_models.make("backbone"), tmp_path / "bare")
    (directory / "modules.json").write_text((written[1] / "modules.json").read_text())
    (directory / "1_SpladePooling").mkdir()
    (directory / "1_SpladePooling" / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="must hold the head of a masked language model"):
        load_task(directory, preprocessor=None)
