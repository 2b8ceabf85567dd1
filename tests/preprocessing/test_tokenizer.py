"""`Tokenizer`: what both tokenizers have in common."""

import copy
import pickle
import sys

import keras
import pytest

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import AddedToken, BertTokenizer, BytePairTokenizer, SentencePieceTokenizer
from keras_bert_layers.preprocessing.byte_level.merges import byte_characters
from keras_bert_layers.preprocessing.tokenizer import Tokenizer, check_is_tokenizer

PIECES = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "▁a", "b", "▁"]
TOKENIZERS = {
    "BertTokenizer": lambda: BertTokenizer(["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]", "a", "##b"]),
    "SentencePieceTokenizer": lambda: SentencePieceTokenizer(PIECES, [None] * 5 + [-1.0, -1.0, -2.0]),
}


@pytest.fixture(scope="module", params=TOKENIZERS)
def tokenizer(request):
    return TOKENIZERS[request.param]()


def test_ids(tokenizer):
    assert (tokenizer.start_id, tokenizer.pad_id, tokenizer.separator_id, tokenizer.unknown_id) == (0, 1, 2, 3)
    assert tokenizer.mask_id == 4
    assert tokenizer.mask_token in ("[MASK]", "<mask>")
    assert tokenizer.vocabulary_size() == len(tokenizer.all_tokens())
    for token_id, token in enumerate(tokenizer.all_tokens()):
        assert tokenizer.token_to_id(token) == token_id
        assert tokenizer.id_to_token(token_id) == token


@pytest.mark.usefixtures("traces_nothing")
def test_text_to_ids_and_back(tokenizer):
    ids, starts, ends = tokenizer.tokenize_with_offsets(["ab a", ""])
    assert ids.to_list() == tokenizer(["ab a", ""]).to_list() == [[5, 6, 5], []]
    assert (starts.to_list()[0], ends.to_list()[0]) == ([0, 1, 3], [1, 2, 4])
    assert tokenizer.detokenize(ids).numpy().tolist() == [b"ab a", b""]
    assert tokenizer.continues_word()[5:7] == [False, True]


@pytest.mark.parametrize("kind", [*TOKENIZERS, "BytePairTokenizer"])
def test_text_of_a_long_row_beside_many(kind):
    """A matrix of them would have 4 * 10**9 places."""
    tokenizer, count = TOKENIZERS.get(kind, byte_pair)(), 60_000
    token_id = tokenizer.token_to_id(tokenizer.all_tokens()[6])
    ids = tf.RaggedTensor.from_row_lengths([token_id] * 2 * count, [1] * count + [count])
    found = tokenizer.detokenize(ids).numpy()
    assert {*found[:-1]} == {tokenizer.detokenize([[token_id]]).numpy()[0]}
    assert len(found[-1]) == len(tokenizer.detokenize([[token_id] * count]).numpy()[0]) >= count
    nested = tokenizer.detokenize(tf.RaggedTensor.from_row_lengths(ids, [2, count - 1]))
    uniform = tf.RaggedTensor.from_row_lengths(tf.constant([[token_id, tokenizer.pad_id]] * 3), [2, 1])
    assert [len(row) for row in tokenizer.detokenize(uniform).to_list()] == [2, 1]
    assert (nested.shape.rank, nested.values.numpy().tolist()) == (2, found.tolist())


def test_errors_name_the_class(tokenizer):
    name = type(tokenizer).__name__
    with pytest.raises(TypeError, match=f"`{name}`: `text` must be strings"):
        tokenizer.tokenize(3)
    with pytest.raises(ValueError, match=f"`{name}`: `token` must be.*becomes .*, id 3"):
        tokenizer.token_to_id("zz")
    with pytest.raises(AttributeError, match=f"`{name}` has no `from_pretrained`.*load_tokenizer"):
        type(tokenizer).from_pretrained("x")
    with pytest.raises(AttributeError, match=f"`{name}` has no `encode`. Use `tokenize`"):
        tokenizer.encode("x")


@pytest.mark.parametrize(
    "travel",
    [
        copy.deepcopy,
        lambda tokenizer: pickle.loads(pickle.dumps(tokenizer)),
        lambda tokenizer: keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(tokenizer)),
    ],
    ids=["deepcopy", "pickle", "keras"],
)
def test_copies(travel, tokenizer):
    copied = travel(tokenizer)
    assert type(copied) is type(tokenizer)
    assert copied.get_config() == tokenizer.get_config()


def test_without_a_mask():
    pieces = [piece for piece in PIECES if piece != "<mask>"]
    for tokenizer in (
        BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]"]),
        SentencePieceTokenizer(pieces, [None] * 4 + [-1.0, -1.0, -2.0], mask_token=None),
    ):
        assert tokenizer.mask_token is None
        with pytest.raises(ValueError, match="must be a token of the vocabulary. Received: token='.*(?i:mask)"):
            _ = tokenizer.mask_id


def test_check(tokenizer):
    check_is_tokenizer("Layer", tokenizer)
    assert isinstance(tokenizer, Tokenizer)
    with pytest.raises(TypeError, match="`Layer`: `tokenizer` must be a BertTokenizer"):
        check_is_tokenizer("Layer", object())


MANY = 8_000
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
# The best pieces of "aaaaa" have equals, and are looked for once more.
EQUAL_SUMS = ["▁", "▁a", "a", "aa"], [-2.3, -3.1, -2.1, -4.1]


def byte_pair(**options):
    return BytePairTokenizer([*SPECIAL, *byte_characters().values()], [], **options)


LINEAR = {
    "word_piece": lambda: BertTokenizer(
        ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]", "a", "##a"],
        reference="huggingface",
        added_tokens=[AddedToken("<s>", single_word=True, lstrip=True)],
    ),
    "sentence_piece": lambda: SentencePieceTokenizer([*SPECIAL, *EQUAL_SUMS[0]], [None] * 5 + EQUAL_SUMS[1]),
    "byte_level": lambda: byte_pair(stripping_tokens=["<mask>"]),
    "byte_level_composed": lambda: byte_pair(normalizer="nfc", trim_offsets=False, added_tokens=["a"]),
}


def texts_of(number):
    """Texts of many parts of which one is long: a copy of it, or a column for its length, for each part is too much."""
    words = " ".join("".join("abcdefghij"[int(digit)] for digit in str(10**5 + index)) for index in range(number))
    return {
        "special tokens": ["<s>" * number * 3 + "a" * number],
        "NUL": ["<s>\0" * number + "a" * number],
        "words": ["a" * number * 2 + " " + words],
        "equal words": ["a" * number + " aaaaa" * (number // 4)],
        "texts": ["e\u0301<s>" * number + "a", *["b"] * (number // 2)],
    }


@pytest.mark.skipif(sys.platform != "linux", reason="measures as Linux does")
@pytest.mark.parametrize(
    "number", [pytest.param(MANY, id="many"), pytest.param(10 * MANY, id="ten_times", marks=[pytest.mark.exhaustive])]
)
@pytest.mark.parametrize("name", LINEAR)
def test_memory_is_linear(name, number):
    import resource

    tokenizer, gigabyte = LINEAR[name](), 2**20
    for kind, texts in texts_of(number).items():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        ids, starts, ends = tokenizer.tokenize_with_offsets(texts)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert after - before < gigabyte * number // MANY // 2, kind
        assert ids.row_lengths().numpy().tolist() == starts.row_lengths().numpy().tolist()
        assert (ends.flat_values >= starts.flat_values).numpy().all()
