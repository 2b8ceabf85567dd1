import json
import re

import pytest

from keras_bert_layers import BertBackbone, BertSentenceEncoder, load_task, save_huggingface
from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.checkpoint import DoubtKind
from keras_bert_layers.checkpoints.sentence_transformers.modules import (
    ACTIVATIONS,
    doubts_of_similarity,
    encoder_heads,
    read_activation,
    read_prompts,
    read_truncation,
    sentence_encoder_options,
    side_prompts,
    text_settings,
    transformer_folder,
    unused_prompts,
    written_activation,
)


@pytest.fixture
def modules(huggingface, tmp_path):
    """Writes a chain of modules and gives the directory."""
    return lambda **options: huggingface.add_modules(tmp_path, **options)


def settings(root):
    return sentence_encoder_options(root, hidden_dim=15)


# One import path per release: up to 5.3, 5.4, and after.
@pytest.mark.parametrize(
    "package", ["models", "sentence_transformer.modules.pooling", "base.modules.transformer"], ids=["old", "5.4", "new"]
)
def test_class_names_of_all_releases(modules, package):
    assert settings(modules(package=package)) == {"pooling": "cls", "normalize": True}


def test_without_normalize(modules):
    assert settings(modules(kinds=("Transformer", "Pooling"))) == {"pooling": "cls", "normalize": False}


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "mean"),
        ({"word_embedding_dimension": 15, "pooling_mode_max_tokens": True, "pooling_mode_mean_tokens": False}, "max"),
        ({"embedding_dimension": 15, "pooling_mode": "cls", "include_prompt": True}, "cls"),
        ({"pooling_mode": ["max"]}, "max"),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, "mean_sqrt_len_tokens"),
        ({"pooling_mode": "lasttoken"}, "lasttoken"),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, ("cls", "mean")),
        ({"pooling_mode": ["weightedmean", "cls"]}, ("weightedmean", "cls")),
        ({}, "mean"),
    ],
)
def test_poolings(modules, pooling, expected):
    assert settings(modules(pooling=pooling))["pooling"] == expected


@pytest.mark.parametrize(
    "pooling",
    [
        {"pooling_mode": "median"},
        {"pooling_mode": ["cls", "median"]},
        {"pooling_mode": []},
        {"pooling_mode": 3},
    ],
)
def test_other_poolings_are_refused(modules, pooling):
    with pytest.raises(
        CheckpointError, match=r"1_Pooling/config\.json: the pooling must be one or several of \['cls', 'max', 'mean',"
    ):
        settings(modules(pooling=pooling))


def test_pooling_of_another_width(modules):
    with pytest.raises(CheckpointError, match=r"`embedding_dimension` must be 15\. Received: 16\. It is the enc"):
        settings(modules(pooling={"word_embedding_dimension": 16}))


def test_pooling_without_its_file(modules):
    root = modules()
    (root / "1_Pooling" / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"1_Pooling/config\.json: the pooling's config is missing"):
        settings(root)


@pytest.mark.parametrize(
    "kinds",
    [
        ("Transformer", "Pooling", "Normalize", "Dense"),
        ("Transformer",),
        ("Router",),
        ("Transformer", "WeightedLayerPooling"),
        ("WordEmbeddings", "Pooling"),
        ("Transformer", "CNN"),
        ("StaticEmbedding", "Normalize"),
        ("Transformer", "Pooling", "LayerNorm"),
    ],
)
def test_other_chains_are_refused(modules, kinds):
    with pytest.raises(CheckpointError, match=rf"modules\.json: the modules must be .*Received: .*'{kinds[-1]}'\]"):
        settings(modules(kinds=kinds))


def test_vectors_may_be_normalized_twice(modules):
    assert settings(modules(kinds=("Transformer", "Pooling", "Normalize", "Normalize"))) == settings(modules())


def test_normalize_of_something_else(modules, huggingface):
    root = modules()
    huggingface.write_json(root / "2_Normalize" / "config.json", {"module_input_name": "token_embeddings"})
    with pytest.raises(CheckpointError, match=r"`module_input_name` must be 'sentence_embedding'"):
        settings(root)


def test_own_code_is_never_run(modules, huggingface):
    root = modules()
    huggingface.write_json(root / "modules.json", [{"type": "custom_model.Transformer", "path": ""}])
    with pytest.raises(CheckpointError, match=r"must be a class of sentence_transformers.*own code is never run"):
        settings(root)


@pytest.mark.parametrize("path", ["..", "../x", "/etc", "a/b", ".", "a\\b", "a\0", "é" * 128, 3])
def test_module_outside_the_directory(modules, huggingface, path):
    root = modules()
    huggingface.write_json(root / "modules.json", [{"type": "sentence_transformers.models.Transformer", "path": path}])
    with pytest.raises(CheckpointError, match=r"a module's path must be a folder of the checkpoint"):
        transformer_folder(root)


@pytest.mark.parametrize("content", ["{}", "[1]"])
def test_not_a_list_of_modules(tmp_path, content):
    (tmp_path / "modules.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"modules\.json: must hold a JSON list of modules"):
        transformer_folder(tmp_path)


@pytest.mark.parametrize("kind", ["CrossEncoder", "SparseEncoder"])
def test_other_kinds_of_model(modules, huggingface, kind):
    root = modules()
    huggingface.write_json(root / "config_sentence_transformers.json", {"model_type": kind})
    with pytest.raises(CheckpointError, match=f"`model_type` must be 'SentenceTransformer'. Received: '{kind}'"):
        settings(root)


def test_settings(modules, huggingface):
    root = modules()
    values = {"prompts": {"query": "query: ", "document": ""}, "default_prompt_name": "query", "truncate_dim": 7}
    huggingface.write_json(root / "config_sentence_transformers.json", values)
    prompts = {"prompts": values["prompts"], "default_prompt": "query"}
    assert settings(root) == {"pooling": "cls", "normalize": True, "truncate_dim": 7, **prompts}
    huggingface.write_json(root / "config_sentence_transformers.json", {"truncate_dim": 15})
    assert "truncate_dim" not in settings(root), "all features are kept"


def test_prompts_that_are_not_pooled(modules, huggingface):
    root = modules(pooling={"pooling_mode": "mean", "include_prompt": False})
    assert settings(root)["pooling"] == "mean", "without a prompt it changes nothing"
    huggingface.write_json(root / "config_sentence_transformers.json", {"prompts": {"query": "query: "}})
    with pytest.raises(CheckpointError, match=r"`include_prompt` must be True\..*a prompt is not implemented"):
        settings(root)


def test_dense_layers_in_a_row(modules, huggingface):
    root = modules(kinds=("Transformer", "Pooling", "Dropout", "Dense", "Dense", "Normalize"))
    first = {"in_features": 15, "out_features": 7, "activation_function": "torch.nn.modules.linear.Identity"}
    huggingface.write_json(root / "3_Dense" / "config.json", first)
    huggingface.write_json(root / "4_Dense" / "config.json", {"in_features": 7, "out_features": 5})
    expected = {"projection_dim": (7, 5), "projection_activation": ("linear", "tanh")}
    assert settings(root) == {"pooling": "cls", "normalize": True, **expected}
    huggingface.write_json(root / "4_Dense" / "config.json", {"in_features": 15, "out_features": 5})
    with pytest.raises(CheckpointError, match=r"4_Dense/config\.json: `in_features` must be 7\. Received: 15"):
        settings(root)


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"transformer_task": "fill-mask"}, "transformer_task"),
        ({"module_output_name": "scores"}, "module_output_name"),
        ({"modality_config": {"text": {"method_output_name": "pooler_output"}}}, "method_output_name"),
    ],
)
def test_other_outputs_of_the_encoder(modules, huggingface, values, key):
    root = modules()
    stated = {"transformer_task": "feature-extraction", "module_output_name": "token_embeddings"}
    text = {"method": "forward", "method_output_name": "last_hidden_state"}
    huggingface.write_json(root / "sentence_bert_config.json", {**stated, "modality_config": {"text": text}})
    settings(root)
    huggingface.write_json(root / "sentence_bert_config.json", {**stated, **values})
    with pytest.raises(CheckpointError, match=rf"sentence_bert_config\.json: `{key}` must be"):
        settings(root)


@pytest.mark.parametrize("kind", ["Router", "Asym", "WordEmbeddings"])
def test_no_transformer(modules, kind):
    with pytest.raises(CheckpointError, match=rf"modules\.json: the modules must be .*Received: \['{kind}'\]"):
        transformer_folder(modules(kinds=(kind,)))


def test_text_settings(huggingface, tmp_path):
    assert text_settings(tmp_path) == (None, False)
    for values, expected in (
        ({"max_seq_length": 77, "do_lower_case": True}, (77, True)),
        ({"transformer_task": "feature-extraction"}, (None, False)),
    ):
        huggingface.write_json(tmp_path / "sentence_bert_config.json", values)
        assert text_settings(tmp_path) == expected


@pytest.mark.parametrize("values", [{"max_seq_length": "8"}, {"max_seq_length": 2}, {"do_lower_case": 1}])
def test_text_settings_of_the_wrong_type(huggingface, tmp_path, values):
    huggingface.write_json(tmp_path / "sentence_bert_config.json", values)
    (key,) = values
    with pytest.raises(CheckpointError, match=rf"sentence_bert_config\.json: `{key}` must be"):
        text_settings(tmp_path)


PROMPTS = {"query": "query: ", "document": "", "other": "x"}


def test_a_dual_encoder_has_the_prompts_of_its_sides(our_models, tmp_path):
    task = BertSentenceEncoder(BertBackbone(our_models.CONFIG), prompts=PROMPTS, default_prompt="other")
    root = save_huggingface(task, tmp_path / "x")
    sentence_encoder, dual_encoder = encoder_heads(root, hidden_dim=15)
    shared = {"pooling": "mean", "normalize": True}
    assert sentence_encoder.options == {**shared, "prompts": PROMPTS, "default_prompt": "other"}
    assert (dual_encoder.name, dual_encoder.options) == ("dual_encoder", {**shared, "prompts": {"query": "query: "}})


@pytest.mark.parametrize("options", [{"truncate_dim": 5}, {"projection_dim": 7}], ids=str)
def test_no_dual_encoder_drops_what_it_does_not_have(our_models, tmp_path, options):
    root = save_huggingface(BertSentenceEncoder(BertBackbone(our_models.CONFIG), **options), tmp_path / "x")
    assert [head.name for head in encoder_heads(root, hidden_dim=15)] == ["sentence_encoder"]
    with pytest.raises(CheckpointError, match=r"which a BertDualEncoder does not have\. Load the task \"sentence_enc"):
        load_task(root, "dual_encoder", preprocessor=None)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_both_ways(name):
    path = written_activation(ACTIVATIONS[name])
    assert path.startswith("torch.nn.modules.")
    assert path.endswith(f".{name}")
    assert read_activation("config.json", "activation_fn", path) == ACTIVATIONS[name]
    assert read_activation("config.json", "activation_fn", f"torch.nn.{name}") == ACTIVATIONS[name]


@pytest.mark.parametrize("value", ["torch.nn.Softsign", "mine.Tanh", "Tanh", "torch.Tanh.x", 3, None, ["torch.Tanh"]])
def test_others_are_refused_by_name(value):
    with pytest.raises(CheckpointError, match=r"config\.json: `activation_fn` must be one of .*Received: ") as raised:
        read_activation("config.json", "activation_fn", value)
    assert repr(value) in str(raised.value)


# What releases 5.7 and 6.2 write of a model without prompts, and of one with two.
EMPTY = {"model_type": "SentenceTransformer", "prompts": {"document": "", "query": ""}, "default_prompt_name": None}
SIDE_PROMPTS = {"document": "passage: ", "query": "query: "}


@pytest.fixture
def root(huggingface, tmp_path):
    """Writes the file and gives its folder."""

    def root(**values):
        huggingface.write_json(tmp_path / "config_sentence_transformers.json", values)
        return tmp_path

    return root


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, {}),
        (EMPTY, {}),
        ({"prompts": None}, {}),
        ({**EMPTY, "default_prompt_name": "query"}, {}),
        ({**EMPTY, "prompts": SIDE_PROMPTS}, {"prompts": SIDE_PROMPTS}),
        (
            {"prompts": {"s": "x ", "t": None}, "default_prompt_name": "s"},
            {"prompts": {"s": "x ", "t": ""}, "default_prompt": "s"},
        ),
        ({"prompts": {"s": "x "}, "default_prompt_name": "document"}, {"prompts": {"s": "x "}}),
    ],
)
def test_prompts(root, values, expected):
    assert read_prompts(root(**values)) == expected


def test_no_file(tmp_path):
    assert read_prompts(tmp_path) == {}
    assert read_truncation(tmp_path) is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"prompts": ["x"]}, r"`prompts` must be a JSON object"),
        ({"prompts": {"s": 3}}, r"a prompt must be a string\. Received: s=3"),
        (
            {"prompts": SIDE_PROMPTS, "default_prompt_name": "s"},
            r"`default_prompt_name` must be one of .*Received: 's'",
        ),
    ],
)
def test_wrong_prompts(root, values, message):
    with pytest.raises(CheckpointError, match=rf"config_sentence_transformers\.json: {message}"):
        read_prompts(root(**values))


def test_prompts_of_a_dual_encoder():
    assert side_prompts({"prompts": {**SIDE_PROMPTS, "other": "x"}}) == {"prompts": SIDE_PROMPTS}
    assert side_prompts({"prompts": {"query": "", "other": "x"}}) == side_prompts({}) == {}


def test_a_prompt_for_documents_that_no_method_uses(tmp_path):
    (doubt,) = unused_prompts(tmp_path, {"query": "query: ", "passage": "passage: ", "document": ""})
    assert doubt.kind is DoubtKind.PROMPTS
    assert "without the prompt 'passage: '" in doubt.text
    assert "Give `predict` prompt='passage'" in doubt.text
    assert unused_prompts(tmp_path, {"passage": "passage: ", "document": "passage: "}) == ()
    assert unused_prompts(tmp_path, SIDE_PROMPTS) == ()


def test_truncation(root):
    assert read_truncation(root(truncate_dim=7)) == 7
    assert read_truncation(root(truncate_dim=None)) is None
    with pytest.raises(CheckpointError, match=r"`truncate_dim` must be an integer of at least 1\. Received: 0"):
        read_truncation(root(truncate_dim=0))


@pytest.mark.parametrize(
    ("name", "options", "cure"),
    [
        (None, {}, None),
        ("cosine", {}, None),
        ("dot", {"normalize": True}, None),
        ("dot", {}, r"Load it with task=\"dual_encoder\"\."),
        ("dot", {"truncate_dim": 4}, "Compare the vectors of `predict` yourself"),
        ("euclidean", {"normalize": True}, "Compare the vectors of `predict` yourself"),
    ],
)
def test_vectors_that_are_not_compared_by_the_cosine(name, options, cure, tmp_path):
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps({"similarity_fn_name": name}))
    found = doubts_of_similarity(tmp_path, {"normalize": False, **options})
    assert [doubt.kind for doubt in found] == [DoubtKind.OUTPUTS] * bool(cure)
    if cure:
        assert re.search(f"`similarity_fn_name` is '{name}'.*{cure}", found[0].text)


def test_a_dual_encoder_compares_by_dot_products(modules):
    root = modules(kinds=("Transformer", "Pooling"))
    (root / "config_sentence_transformers.json").write_text('{"similarity_fn_name": "dot"}')
    encoder, dual = encoder_heads(root, hidden_dim=15)
    assert [len(head.doubts) for head in (encoder, dual)] == [1, 0]
    assert dual.options["normalize"] is False
