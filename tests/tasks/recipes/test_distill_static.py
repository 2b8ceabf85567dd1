"""`distill_static` against a NumPy reference, which runs each token through the encoder alone."""

import numpy as np
import pytest
from vocabulary_models import array, make_backbone

from keras_bert_layers import BertPreprocessor, BertSentenceEncoder, BertStaticEncoder, BertTokenizer
from keras_bert_layers.tasks import distill_static, prune_vocabulary

pytestmark = pytest.mark.usefixtures("traces_nothing")
TEXTS = ["A good film.", "good GOOD goodness", "unhappy film", "", "a a a !"]
# Float32 products of the encoder in batches of other sizes; components are divided by the root of a small variance.
TOLERANCE = 2e-4


@pytest.fixture(scope="module")
def encoder(preprocessor):
    encoder = BertSentenceEncoder(make_backbone(len(preprocessor.tokenizer.all_tokens())), preprocessor=preprocessor)
    for weight in encoder.weights:
        weight.assign(np.random.default_rng(3).normal(0, 0.3, weight.shape))
    return encoder


@pytest.fixture(scope="module")
def static(encoder):
    return distill_static(encoder, dim=5)


def token_means(encoder):
    """The mean hidden state of `[CLS] token [SEP]`, one token at a time."""
    tokenizer = encoder.preprocessor.tokenizer
    found = []
    for index in range(tokenizer.vocabulary_size()):
        ids = np.array([[tokenizer.start_id, index, tokenizer.separator_id]])
        inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
        found.append(np.asarray(encoder.backbone(inputs)["sequence_output"])[0].mean(axis=0))
    return np.array(found, np.float64)


def expected_table(encoder, probabilities, *, dim, coefficient=1e-3):
    """The table, up to the sign of each column."""
    vectors = token_means(encoder)
    _, singular, directions = np.linalg.svd(vectors, full_matrices=False)
    mean_squares = singular**2 / len(vectors)
    table = (vectors @ directions[:dim].T) / mean_squares[:dim] ** 0.25
    table *= (coefficient / (coefficient + probabilities))[:, None]
    tokenizer = encoder.preprocessor.tokenizer
    for index in (tokenizer.pad_id, tokenizer.unknown_id, tokenizer.start_id, tokenizer.separator_id):
        table[index] = 0
    return table


def assert_equal_up_to_signs(table, expected):
    signs = np.sign(np.sum(table * expected, axis=0))
    np.testing.assert_allclose(table, signs * expected, atol=TOLERANCE)


def zipf(tokens):
    """1 / (rank + 1) over the words' own sum; a single character has the rank of the word before it."""
    rank, inverse, total = 0, [], 0.0
    for token in tokens:
        is_word = len(token.replace("##", "", 1)) > 1 and not (token.startswith("[") and token.endswith("]"))
        rank += is_word
        inverse.append(1 / (max(rank, 1) + 1))
        total += inverse[-1] * is_word
    return np.array(inverse) / total


def test_table_by_rank(encoder, static):
    assert type(static) is BertStaticEncoder
    tokens = encoder.preprocessor.tokenizer.all_tokens()
    table = array(static.backbone.weights[0])
    assert table.shape == (len(tokens), 5)
    assert_equal_up_to_signs(table, expected_table(encoder, zipf(tokens), dim=5))
    assert static.preprocessor.tokenizer is encoder.preprocessor.tokenizer
    assert static.preprocessor.max_length == 512


def test_table_by_counts(encoder):
    counts = np.zeros(encoder.preprocessor.tokenizer.vocabulary_size())
    for text in TEXTS:
        for index in encoder.preprocessor.tokenizer.tokenize(text).numpy():
            counts[index] += 1
    static = distill_static(encoder, dim=3, texts=iter(TEXTS), sif_coefficient=0.1)
    expected = expected_table(encoder, counts / counts.sum(), dim=3, coefficient=0.1)
    assert_equal_up_to_signs(array(static.backbone.weights[0]), expected)


def test_the_same_bits_each_time_also_without_normalize(encoder):
    plain = BertSentenceEncoder(encoder.backbone, normalize=False, preprocessor=encoder.preprocessor)
    first, again, other = (array(distill_static(task, dim=5).backbone.weights[0]) for task in (encoder, encoder, plain))
    np.testing.assert_array_equal(again, first)
    np.testing.assert_array_equal(other, first)


def test_a_progress_bar(encoder, capsys):
    distill_static(encoder, dim=3, verbose="auto")
    assert "1/1" in capsys.readouterr().out
    distill_static(encoder, dim=3)
    assert capsys.readouterr().out == ""


def test_vectors_are_means_of_token_vectors(static):
    table, tokenizer = array(static.backbone.weights[0]), static.preprocessor.tokenizer
    found = static.predict(TEXTS, verbose=0)
    for text, vector in zip(TEXTS, found, strict=True):
        mean = table[tokenizer.tokenize(text).numpy()].sum(axis=0)
        length = np.linalg.norm(mean)
        np.testing.assert_allclose(vector, mean / length if length else 0 * mean, atol=TOLERANCE)
    assert not found[TEXTS.index("")].any(), "a text without tokens has zeros, not NaN"


def test_fewer_tokens_than_dimensions():
    tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b"])  # no word has a rank
    encoder = BertSentenceEncoder(make_backbone(6), preprocessor=BertPreprocessor(tokenizer, max_length=9))
    vectors = distill_static(encoder, dim=8).predict(["a", "b a"], verbose=0)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=TOLERANCE)


def test_width_of_a_narrow_encoder(encoder):
    """All of it, where 256 would be the default."""
    assert distill_static(encoder).backbone.config.hidden_dim == 8


def test_pruned(static):
    """The vocabulary of a static encoder can be pruned like that of any task."""
    pruned, _ = prune_vocabulary(static, TEXTS)
    assert pruned.count_params() < static.count_params()
    np.testing.assert_array_equal(pruned.predict(TEXTS, verbose=0), static.predict(TEXTS, verbose=0))


class TestErrors:
    def test_encoder(self, encoder):
        with pytest.raises(TypeError, match="`distill_static`: `encoder` must be a BertSentenceEncoder"):
            distill_static(encoder.backbone)

    def test_preprocessor(self, encoder):
        with pytest.raises(ValueError, match=r"`encoder.preprocessor` must be given. Received: .*=None"):
            distill_static(BertSentenceEncoder(encoder.backbone))

    def test_dim(self, encoder):
        with pytest.raises(ValueError, match="`dim` must be at most the width of the encoder's vectors, 8. Received"):
            distill_static(encoder, dim=9)
        with pytest.raises(ValueError, match="`dim` must be at least 1"):
            distill_static(encoder, dim=0)

    def test_coefficient(self, encoder):
        with pytest.raises(ValueError, match="`sif_coefficient` must be greater than 0"):
            distill_static(encoder, dim=2, sif_coefficient=0)

    def test_texts(self, encoder):
        with pytest.raises(ValueError, match="`texts` must hold at least one token. Received: texts=none"):
            distill_static(encoder, dim=2, texts=[""])
        with pytest.raises(TypeError, match=r"`texts\[1\]` must be a string. Received: texts\[1\]=7"):
            distill_static(encoder, dim=2, texts=["a", 7])
