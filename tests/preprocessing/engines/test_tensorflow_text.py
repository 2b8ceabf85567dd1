import pytest

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.tokens.markers import SUFFIX

pytest.importorskip("tensorflow_text")
engine = pytest.importorskip("keras_bert_layers.preprocessing.engines.tensorflow_text")
TOKENS = ["[UNK]", "a", f"{SUFFIX}a", "é", f"{SUFFIX}é", "."]


def test_words_are_counted_in_bytes_in_texts_and_not_alone():
    """A text is encoded with a limit in bytes; a word alone with one that its characters never reach."""
    model = engine.WordPieceModel(TOKENS, max_word_length=4, unknown="[UNK]", splits_texts=True)
    assert model.splits_texts
    texts = tf.constant(["aaaa éé. aaaaa", "ééé", ""])
    tokens = model.encode_texts(texts)
    assert tokens.ids.numpy().tolist() == [1, 2, 2, 2, 3, 4, 5, 0, 0]
    assert tokens.row_splits.numpy().tolist() == [0, 8, 9, 9]
    assert (tokens.starts[-2:].numpy().tolist(), tokens.ends[-2:].numpy().tolist()) == ([11, 0], [16, 6])
    words = model.encode_words(tf.constant(["éééé", "aaaaa"]))
    assert words.ids.numpy().tolist() == [3, 4, 4, 4, 1, 2, 2, 2, 2]


def test_models_of_words_do_not_split():
    model = engine.WordPieceModel(TOKENS, max_word_length=4, unknown="[UNK]", splits_texts=False)
    assert not model.splits_texts
    tokens = model.encode_words(tf.constant(["aé", "a.a", "é"]))
    assert tokens.ids.numpy().tolist() == [1, 4, 0, 3]
    assert tokens.row_splits.numpy().tolist() == [0, 2, 3, 4]


def test_models_of_the_same_tokens_are_built_once(monkeypatch):
    find, built = engine.tensorflow_text_internals.find, []

    def counted(internal):
        assert internal == engine.tensorflow_text_internals.BUILD_WORDPIECE_MODEL
        return build

    def build(tokens, *options):
        built.append([*tokens, options[0]])
        return find(engine.tensorflow_text_internals.BUILD_WORDPIECE_MODEL)(tokens, *options)

    monkeypatch.setattr(engine.tensorflow_text_internals, "find", counted)
    for tokens, length in ((TOKENS, 4), (TOKENS, 4), (TOKENS[:-1], 4), (TOKENS, 5), (TOKENS, 4)):
        model = engine.WordPieceModel(tokens, max_word_length=length, unknown="[UNK]", splits_texts=True)
        ids = model.encode_texts(tf.constant(["aaaaa"])).ids.numpy().tolist()
        assert ids == ([0] if length == 4 else [1, 2, 2, 2, 2])
    assert built == [[*TOKENS, 4], [*TOKENS[:-1], 4], [*TOKENS, 5]]


def test_split():
    spans, starts, ends, row_splits = engine.split(tf.constant(["a,b c", " "]), "[ ,]", "[,]")
    assert spans.numpy().tolist() == [b"a", b",", b"b", b"c"]
    assert (starts.numpy().tolist(), ends.numpy().tolist()) == ([0, 1, 2, 4], [1, 2, 3, 5])
    assert row_splits.numpy().tolist() == [0, 4, 4]
