import json

import pytest

from keras_bert_layers import BertBackbone, BertClassifier, BertCrossEncoder, load_task, save_huggingface
from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.checkpoint import TrainedHead
from keras_bert_layers.checkpoints.sentence_transformers.cross_encoder import cross_encoder_heads

PATHS = {"linear": "torch.nn.modules.linear.Identity", "tanh": "torch.nn.modules.activation.Tanh"}
ONE_LABEL = TrainedHead("classifier", {"problem_type": "regression"}), TrainedHead("cross_encoder", {"dropout": 0.5})
SEVERAL_LABELS = (TrainedHead("classifier", {"class_names": ["a", "b"]}),)
PROMPTS = {"query": "query: ", "other": "x"}


@pytest.fixture
def newest(huggingface, tmp_path):
    """Writes the files of releases 5.4 to 6 beside `config.json`."""

    def newest(kinds=("Transformer",), **values):
        huggingface.add_modules(tmp_path, kinds=kinds, package="base.modules.transformer")
        values = {"model_type": "CrossEncoder", "prompts": {}, "default_prompt_name": None, **values}
        huggingface.write_json(tmp_path / "config_sentence_transformers.json", values)
        return tmp_path

    return newest


def options(root, config, heads=ONE_LABEL):
    """The options of the first head, a cross-encoder."""
    first = cross_encoder_heads(root, config, heads)[0]
    assert first.name == "cross_encoder"
    return first.options


def test_a_classifier_stays_one(tmp_path):
    assert cross_encoder_heads(tmp_path, {"architectures": []}, ONE_LABEL) == ONE_LABEL


@pytest.mark.parametrize("activation", PATHS)
def test_activation_in_the_files_of_each_release(newest, tmp_path, activation):
    path, expected = PATHS[activation], {"dropout": 0.5, "activation": activation}
    assert options(tmp_path, {"sbert_ce_default_activation_function": path}) == expected
    assert options(tmp_path, {"sentence_transformers": {"version": "4.1.0", "activation_fn": path}}) == expected
    other = {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.ReLU"}}
    assert options(newest(activation_fn=path), other) == expected


def test_nothing_stated_is_a_sigmoid(newest, tmp_path):
    assert options(tmp_path, {"sbert_ce_default_activation_function": None}) == {"dropout": 0.5}
    assert options(newest(activation_fn=None), {}) == {"dropout": 0.5}


def test_prompts(newest):
    root = newest(prompts=PROMPTS, default_prompt_name="query")
    assert options(root, {}) == {"dropout": 0.5, "prompts": PROMPTS, "default_prompt": "query"}


def test_several_labels(newest):
    assert cross_encoder_heads(newest(activation_fn=PATHS["linear"]), {}, SEVERAL_LABELS) == SEVERAL_LABELS
    with pytest.raises(CheckpointError, match=r"several labels must have no activation\. Received: activation='tanh'"):
        cross_encoder_heads(newest(activation_fn=PATHS["tanh"]), {}, SEVERAL_LABELS)
    with pytest.raises(CheckpointError, match=r"several labels must have no default_prompt\. Received: .*'query'"):
        cross_encoder_heads(newest(prompts=PROMPTS, default_prompt_name="query"), {}, SEVERAL_LABELS)


def test_an_unknown_activation_is_named(tmp_path):
    config = {"sbert_ce_default_activation_function": "torch.nn.modules.activation.Hardswish"}
    with pytest.raises(CheckpointError, match=r"`sbert_ce_default_activation_function` must .*activation\.Hardswish'"):
        cross_encoder_heads(tmp_path, config, ONE_LABEL)


@pytest.mark.parametrize("kinds", [("Transformer", "Pooling", "Dense"), ("Transformer", "LogitScore")])
def test_other_modules_are_refused(newest, kinds):
    with pytest.raises(CheckpointError, match=rf"must be \['Transformer'\]\. Received: .*'{kinds[-1]}'\]"):
        cross_encoder_heads(newest(kinds), {}, ONE_LABEL)


def test_saved_and_loaded(our_models, tmp_path):
    settings = {"activation": "mish", "prompts": PROMPTS, "default_prompt": "query"}
    task = BertCrossEncoder(BertBackbone(our_models.CONFIG), our_models.preprocessor(), **settings)
    again = load_task(save_huggingface(task, tmp_path / "x"))
    assert {name: getattr(again, name) for name in settings} == settings
    values = json.loads((tmp_path / "x" / "config.json").read_text())
    assert values["sentence_transformers"] == {"activation_fn": "torch.nn.modules.activation.Mish"}
    assert isinstance(load_task(tmp_path / "x", "classifier"), BertClassifier)


def test_an_activation_that_torch_has_no_class_for(our_models, tmp_path):
    task = BertCrossEncoder(BertBackbone(our_models.CONFIG), activation="gelu_tanh")
    with pytest.raises(ValueError, match=r"`model\.activation` must be one of .*Received: .*'gelu_tanh'"):
        save_huggingface(task, tmp_path / "x")
