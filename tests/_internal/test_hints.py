"""Errors for names of other libraries, such as `from_pretrained`."""

import copy
import inspect
import pickle
import re

import pytest

import keras_bert_layers as kbl

SIZES = {"vocabulary_size": 9, "hidden_dim": 6, "num_layers": 2, "num_heads": 2, "intermediate_dim": 10}


@pytest.mark.parametrize(
    ("cls", "cure"),
    [
        (kbl.BertBackbone, r"keras_bert_layers.load_backbone\(source\)"),
        (kbl.BertClassifier, r"keras_bert_layers.load_task\(source, task\)"),
        (kbl.BertSentenceEncoder, r"keras_bert_layers.load_task\(source, task\)"),
        (kbl.BertTokenizer, r"keras_bert_layers.load_tokenizer\(source\)"),
        (kbl.BertPreprocessor, r"keras_bert_layers.load_preprocessor\(source\)"),
        (kbl.BertConfig, r"presets.preset_config\(name\)"),
    ],
)
@pytest.mark.parametrize("method", ["from_preset", "from_pretrained"])
def test_methods_of_other_libraries(cls, cure, method):
    with pytest.raises(AttributeError, match=f"`{cls.__name__}` has no `{method}`. Use `{cure}"):
        getattr(cls, method)("bert-base-uncased")


@pytest.mark.parametrize(
    ("cls", "method", "cure"),
    [
        (kbl.BertSentenceEncoder, "encode", r"predict\(texts\)"),
        (kbl.BertDualEncoder, "encode", r"encode_queries\(texts\)"),
        (kbl.BertClassifier, "predict_proba", r"answer\(texts\)"),
    ],
)
def test_methods_of_other_classes(cls, method, cure):
    with pytest.raises(AttributeError, match=f"`{cls.__name__}` has no `{method}`. Use `{cure}"):
        getattr(cls, method)


@pytest.mark.parametrize("cls", [kbl.BertBackbone, kbl.BertCrossEncoder, kbl.BertTokenizer, kbl.BertPreprocessor])
def test_saving_as_transformers_does(cls):
    with pytest.raises(AttributeError, match=f"`{cls.__name__}` has no `save_pretrained`. .*save_huggingface"):
        _ = cls.save_pretrained
    assert callable(kbl.checkpoints.save_huggingface)


@pytest.mark.parametrize(
    ("method", "name", "cure"),
    [
        (None, "class_name", "Did you mean `class_names`?"),
        (None, "num_labels", "Did you mean `num_classes`?"),
        (None, "n_classes", "Did you mean `num_classes`?"),
        (None, "qqq", "It has backbone, num_classes, class_names, "),
        ("compile", "learning_rate", "Give `optimizer=keras_bert_layers.optimizers.adamw(learning_rate)`."),
        ("compile", "optimiser", "Did you mean `optimizer`?"),
        ("fit", "epoch", "Did you mean `epochs`?"),
        ("fit", "labels", "Did you mean `y`?"),
        ("predict", "texts", "Did you mean `x`?"),
        ("answer", "question", "Give both as `x=(question, context)`."),
    ],
)
def test_wrong_keywords_of_a_task(method, name, cure):
    backbone = kbl.BertBackbone(kbl.BertConfig(**SIZES))
    call = kbl.BertClassifier if method is None else getattr(kbl.BertClassifier(backbone, 2), method)
    where = "__init__" if method is None else method
    text = (
        f"`BertClassifier`: `{name}` must be an argument of `{where}`, which has none of this name. Received: {name}=3."
    )
    with pytest.raises(TypeError, match=re.escape(f"{text} {cure}")):
        call(backbone, **{name: 3})


def test_signatures_of_methods_with_checked_keywords_stay():
    assert list(inspect.signature(kbl.BertClassifier.predict).parameters)[:4] == ["self", "x", "batch_size", "verbose"]


@pytest.mark.parametrize("dialect", ["google", "huggingface", "kerashub"])
@pytest.mark.parametrize("way", ["from", "to"])
def test_conversions_are_functions_of_checkpoints(dialect, way):
    text = f"`BertConfig` has no `{way}_{dialect}`. Use `keras_bert_layers.checkpoints.config_{way}_{dialect}`."
    with pytest.raises(AttributeError, match=re.escape(text)):
        getattr(kbl.BertConfig(**SIZES), f"{way}_{dialect}")
    assert callable(getattr(kbl.checkpoints, f"config_{way}_{dialect}"))


def test_arguments_of_transformers():
    values = {"vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    values |= {"intermediate_size": 9, "max_position_embeddings": 5, "type_vocab_size": 2, "hidden_act": "gelu"}
    with pytest.raises(TypeError, match="`BertConfig`: every argument must be one of") as error:
        kbl.BertConfig(**values, layers=3)
    names = (
        "vocabulary_size hidden_dim num_layers num_heads intermediate_dim max_sequence_length num_segments activation"
    )
    for theirs, ours in zip(values, names.split(), strict=True):
        assert f"{theirs} (here {ours!r})" in str(error.value)
    assert ", layers. For the content" in str(error.value)


def test_a_config_is_what_it_was():
    config = kbl.BertConfig(**SIZES)
    assert next(iter(inspect.signature(kbl.BertConfig).parameters)) == "vocabulary_size"
    assert pickle.loads(pickle.dumps(config)) == copy.deepcopy(config) == config
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'hidden_dim'"):
        kbl.BertConfig(**{name: value for name, value in SIZES.items() if name != "hidden_dim"})
