import json
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_bert_layers as kbl
from keras_bert_layers.checkpoints import CheckpointError, save_google
from keras_bert_layers.checkpoints import save_google as public_name

FILES = ["bert_config.json", "bert_model.ckpt.data-00000-of-00001", "bert_model.ckpt.index"]

# The names of each head's weights in Google's run_*.py; the encoder's come on top.
HEADS = {
    "backbone": lambda google: {},
    "classifier": lambda google: google.classifier(3),
    "unnamed_classifier": lambda google: google.classifier(5),
    "multi_label_classifier": lambda google: google.classifier(4),
    "regression": lambda google: google.classifier(1),
    "cross_encoder": lambda google: google.classifier(1),
    "question_answerer": lambda google: google.question_answerer(),
    "masked_lm": lambda google: google.masked_lm(),
    "pretrainer": lambda google: {**google.masked_lm(), **google.next_sentence()},
    "sentence_encoder": lambda google: {},
}


@pytest.fixture
def save(tmp_path):
    """Writes a model whose epsilon Google's code does not have."""

    def save(model, name="written", **options):
        with pytest.warns(
            UserWarning, match=r"`save_google`: Google's code has no setting for layer_norm_epsilon=1e-07 \("
        ):
            return save_google(model, tmp_path / name, **options)

    return save


def plain(model):
    """What a task was made with, apart from its parts."""
    config = model.get_config()
    return {name: config[name] for name in config if name not in ("backbone", "preprocessor", "name", "seed")}


@pytest.mark.parametrize("kind", HEADS)
def test_round_trip(kind, our_models, google, save):
    model = our_models.make(kind)
    options = {"preprocessor": our_models.preprocessor()} if kind == "backbone" else {}
    directory = save(model, **options)
    assert sorted(path.name for path in directory.iterdir()) == [*FILES, "vocab.txt"]
    stored = {name: tuple(shape) for name, shape in tf.train.list_variables(str(directory / "bert_model.ckpt"))}
    assert stored == {**google.encoder(), **HEADS[kind](google)}
    again = kbl.load_backbone(directory) if kind == "backbone" else kbl.load_task(directory)
    assert type(again) is type(model)
    for ours, theirs in zip(model.weights, again.weights, strict=True):
        assert ours.path == theirs.path
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(ours), keras.ops.convert_to_numpy(theirs))
    preprocessor = kbl.load_preprocessor(directory)
    assert preprocessor.max_length == our_models.MAX_LENGTH
    assert preprocessor.tokenizer.get_config() == our_models.preprocessor().tokenizer.get_config()
    if kind == "backbone":
        assert again.config == model.config
    else:
        assert again.backbone.config == model.backbone.config
        assert plain(again) == plain(model)


def test_tensorflow_restores_it_into_googles_variables(our_models, google, save):
    directory = save(our_models.make("pretrainer"))
    shapes = {**google.encoder(), **google.masked_lm(), **google.next_sentence()}
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variables = {name: tf.compat.v1.get_variable(name, shape, use_resource=False) for name, shape in shapes.items()}
        tf.compat.v1.train.Saver().restore(session, str(directory / "bert_model.ckpt"))
        found = session.run(variables)
    model = our_models.make("pretrainer")
    weights = our_models.weights(model)
    expected = google.expected_weights(found)
    for path, array in expected.items():
        (name,) = (name for name in weights if f"/{name}".endswith(f"/{path}"))
        np.testing.assert_array_equal(weights[name], array)
    np.testing.assert_array_equal(
        found["cls/seq_relationship/output_weights"], weights["next_sentence_head/dense/kernel"].T
    )


def test_googles_own_checkpoint_comes_back_byte_for_byte(google, tmp_path):
    shapes = {**google.encoder(), **google.masked_lm(), **google.next_sentence()}
    source, _ = google.write(tmp_path / "uncased_L-2_H-15_A-3", shapes)
    written = save_google(kbl.load_task(source), tmp_path / "written")  # and nothing is warned of
    for name in (*FILES[1:], "vocab.txt"):
        assert (written / name).read_bytes() == (source / name).read_bytes(), name
    values = json.loads((written / FILES[0]).read_text(encoding="utf-8"))
    assert values == {**google.CONFIG, "do_lower_case": True}
    assert list(google.CONFIG) == list(values)[:-1]
    assert type(kbl.load_task(written)).__name__ == "BertPretrainer"


def test_casing_is_kept_whatever_the_directory_is_called(google, tmp_path):
    source, _ = google.write(tmp_path / "cased_L-2_H-15_A-3")
    preprocessor = kbl.load_preprocessor(source)
    assert preprocessor.tokenizer.lowercase is False
    written = save_google(kbl.load_backbone(source), tmp_path / "uncased", preprocessor=preprocessor)
    assert kbl.load_tokenizer(written).lowercase is False


def test_the_same_bytes_each_time(our_models, save):
    first, second = (save(our_models.make("classifier"), name) for name in ("a", "b"))
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()


@pytest.mark.slow
def test_minilm(minilm, tmp_path):
    """Real weights, with everything that Google's files have no setting for."""
    encoder = kbl.load_task(minilm)
    message = (
        r"for activation='gelu_erf' \(there 'gelu_tanh'\), reference='huggingface' \(there 'google'\): it computes"
    )
    with pytest.warns(UserWarning, match=message):
        directory = save_google(encoder, tmp_path / "minilm")
    again = kbl.load_task(directory)
    for ours, theirs in zip(encoder.weights, again.weights, strict=True):
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(ours), keras.ops.convert_to_numpy(theirs), ours.path)
    assert (plain(again), again.backbone.config) == (plain(encoder), encoder.backbone.config)
    assert again.preprocessor.max_length == encoder.preprocessor.max_length == 256
    assert again.preprocessor.tokenizer.get_config() == encoder.preprocessor.tokenizer.get_config()
    assert (directory / "vocab.txt").read_bytes() == (minilm / "vocab.txt").read_bytes()


def test_narrower_embedding(tmp_path):
    config = kbl.BertConfig(
        vocabulary_size=9,
        hidden_dim=8,
        num_layers=1,
        num_heads=2,
        intermediate_dim=7,
        embedding_dim=5,
        activation="gelu_tanh",
    )
    with pytest.warns(UserWarning, match=r"no setting for embedding_dim=5 \(there None\): it computes .*, or none\."):
        directory = save_google(kbl.BertBackbone(config), tmp_path / "a")
    assert kbl.load_backbone(directory).config == config
    assert sorted(path.name for path in directory.iterdir()) == FILES


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"split_chinese": False}, "split_chinese=False (there True)"),
        ({"num_pair_separators": 2}, "num_pair_separators=2 (there 1)"),
        ({"strip_accents": False}, "strip_accents=False (there True)"),
    ],
)
def test_tokenizers_that_google_does_not_have(our_models, tmp_path, options, text):
    with pytest.warns(UserWarning, match=re.escape(text)):
        directory = save_google(
            our_models.make("backbone"), tmp_path / "a", preprocessor=our_models.preprocessor(**options)
        )
    config = our_models.preprocessor(**options).tokenizer.get_config()
    assert kbl.load_tokenizer(directory).get_config() == config


def test_a_head_of_another_kind(our_models, tmp_path):
    backbone = kbl.BertBackbone(our_models.CONFIG)
    model = kbl.BertMaskedLM(
        backbone, our_models.preprocessor(), head_activation="gelu_erf", head_layer_norm_epsilon=1e-5
    )
    text = "head_activation='gelu_erf' (there 'gelu_tanh'), head_layer_norm_epsilon=1e-05 (there 1e-12)"
    with pytest.warns(UserWarning, match=re.escape(text)):
        directory = save_google(model, tmp_path / "a")
    assert plain(kbl.load_task(directory)) == plain(model)


@pytest.mark.parametrize("kind", ["token_classifier", "multiple_choice", "dual_encoder"])
def test_tasks_that_google_does_not_have(our_models, tmp_path, kind):
    message = (
        r"`save_google`: `model` must be one of BertBackbone, .* Google has no such task; save `model\.backbone`\."
    )
    with pytest.raises(TypeError, match=message):
        save_google(our_models.make(kind), tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_weights_beside_berts_own(our_models, tmp_path):
    with pytest.raises(ValueError, match=r"`model` must have BERT's own weights and no others\..*dense_projection"):
        save_google(our_models.make("projected_sentence_encoder"), tmp_path / "a")


def test_another_activation(our_models, tmp_path):
    config = kbl.BertConfig(**{**our_models.CONFIG.to_dict(), "activation": "silu"})
    with pytest.raises(
        ValueError, match=r"`activation` must be one of \['gelu_erf', .*Received: activation='silu'\. Google"
    ):
        save_google(kbl.BertBackbone(config), tmp_path / "a")


def test_vocabularies_that_do_not_fit(our_models, tmp_path):
    def preprocessor(*more):
        return kbl.BertPreprocessor(kbl.BertTokenizer([*our_models.VOCABULARY, *more]), max_length=9)

    backbone = our_models.make("backbone")
    with pytest.raises(
        ValueError, match=r"`preprocessor\.tokenizer` must have at most the model's 23 tokens\. .*=28\."
    ):
        save_google(backbone, tmp_path / "a", preprocessor=preprocessor(*"vwxyzuVWXY"))
    marked = kbl.BertTokenizer(our_models.VOCABULARY, added_tokens=[{"content": "<e>", "normalized": False}])
    with pytest.raises(
        ValueError, match=r"`tokenizer.added_tokens` must be empty.*Only `save_huggingface` has a place"
    ):
        save_google(backbone, tmp_path / "c", preprocessor=kbl.BertPreprocessor(marked, max_length=9))
    with pytest.raises(ValueError, match=r"must have no token with the end of a line\. Received: .*'x\\r'"):
        save_google(backbone, tmp_path / "a", preprocessor=preprocessor("x\r"))
    with pytest.raises(TypeError, match=r"`preprocessor` must be a BertPreprocessor or None\. Received: .*'text'"):
        save_google(backbone, tmp_path / "a", preprocessor="text")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:.save_google.:UserWarning")
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_nothing_half_written(our_models, tmp_path, monkeypatch, error):
    def interrupted(entries):
        raise error

    monkeypatch.setattr("keras_bert_layers.checkpoints.files.tf1_checkpoint.index_bytes", interrupted)
    with pytest.raises((KeyboardInterrupt, CheckpointError)):
        save_google(our_models.make("backbone"), tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:.save_google.:UserWarning")
def test_a_directory_that_holds_something(our_models, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match=r"`save_google`: `directory` must be new, or an empty directory"):
        save_google(our_models.make("backbone"), tmp_path)


def test_public_names():
    assert kbl.save_google is public_name


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (kbl.BertCrossEncoder, {"activation": "tanh"}),
        (kbl.BertSentenceEncoder, {"pooling": ("cls", "lasttoken"), "truncate_dim": 5}),
    ],
)
def test_prompts_and_what_belongs_to_them(tmp_path, kind, settings):
    sizes = {"vocabulary_size": 9, "hidden_dim": 8, "num_layers": 1, "num_heads": 2, "intermediate_dim": 7}
    settings = {**settings, "prompts": {"query": "query: "}, "default_prompt": "query"}
    task = kind(kbl.BertBackbone(kbl.BertConfig(**sizes, activation="gelu_tanh")), **settings)
    again = kbl.load_task(save_google(task, tmp_path / "a"), preprocessor=None)
    assert {name: getattr(again, name) for name in settings} == settings
