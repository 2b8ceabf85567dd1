import inspect
import re

import keras
import numpy as np
import pytest

from keras_bert_layers import BertPreprocessor, BertTokenizer
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import MaskedLMGenerator, Masking

# A share of n draws strays from its probability by more than five standard deviations once in two million cases.
DEVIATIONS = 5
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(5)
VOCABULARY = [*SPECIAL, *(f"word{number}" for number in range(61)), *(f"##piece{number}" for number in range(30))]
FIRST_WORD, FIRST_PIECE = 5, 66


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(VOCABULARY)


def row(num_tokens, width):
    """A row of some tokens, [CLS], [SEP] and [UNK] among them, and padding."""
    ids = [CLS, *(FIRST_WORD + place % 40 for place in range(num_tokens - 2)), SEP]
    return ids + [PAD] * (width - num_tokens)


def as_inputs(rows):
    ids = np.array(rows, "int32")
    return {"token_ids": ids, "padding_mask": (ids != PAD).astype("int32")}


def run(generator, rows, **kwargs):
    inputs, labels, weights = generator(as_inputs(rows), **kwargs)
    return {key: np.array(value) for key, value in inputs.items()}, np.array(labels), np.array(weights)


@pytest.mark.parametrize("rate", [0.15, 0.3, 0.05])
@pytest.mark.parametrize("cap", [None, 20])
def test_as_many_as_the_rule_states(tokenizer, rate, cap):
    lengths = range(3, 200)
    generator = MaskedLMGenerator(tokenizer, rate, mask_selection_length=cap)
    _, _, weights = run(generator, [row(length, 211) for length in lengths])
    expected = [min(max(1, round(rate * length)), cap or length) for length in lengths]
    assert weights.sum(axis=1).tolist() == expected
    assert weights.shape[1] == min(round(rate * 211), cap or 211)


def test_halves_go_to_the_even_number(tokenizer):
    lengths = [10, 30, 50, 70]  # 1.5, 4.5, 7.5, 10.5
    _, _, weights = run(MaskedLMGenerator(tokenizer), [row(length, 70) for length in lengths])
    assert weights.sum(axis=1).tolist() == [2, 4, 8, 10]


def test_labels_positions_and_weights_agree(tokenizer):
    rows = np.array([row(length, 93) for length in range(3, 93)])
    inputs, labels, weights = run(MaskedLMGenerator(tokenizer, 0.25, seed=3), rows)
    for ids, original, positions, answers, is_mask in zip(
        inputs["token_ids"], rows, inputs["mask_positions"], labels, weights.astype(bool), strict=True
    ):
        assert (np.diff(positions[is_mask]) > 0).all()
        assert (original[positions[is_mask]] == answers[is_mask]).all()
        assert not positions[~is_mask].any()
        assert not answers[~is_mask].any()
        assert (np.diff(is_mask.astype(int)) <= 0).all()
        untouched = np.setdiff1d(np.arange(93), positions[is_mask])
        assert (ids[untouched] == original[untouched]).all()
    assert set(inputs) == {"token_ids", "padding_mask", "mask_positions"}
    assert labels.dtype == inputs["mask_positions"].dtype == inputs["token_ids"].dtype == np.int32


def test_special_tokens_and_padding_are_never_selected(tokenizer):
    rows = [[CLS, FIRST_WORD, MASK, SEP, UNK, MASK, SEP, PAD, PAD]] * 200
    inputs, _, weights = run(MaskedLMGenerator(tokenizer, 0.9, seed=3), rows)
    assert weights.sum(axis=1).tolist() == [2.0] * 200
    assert np.unique(inputs["mask_positions"][weights > 0]).tolist() == [1, 4]


def test_rows_without_words(tokenizer):
    inputs, _, weights = run(MaskedLMGenerator(tokenizer), [[CLS, SEP, PAD], [CLS, FIRST_WORD, SEP]])
    assert weights.tolist() == [[0.0], [1.0]]
    assert inputs["token_ids"][0].tolist() == [CLS, SEP, PAD]


def test_no_rows(tokenizer):
    inputs, labels, weights = run(MaskedLMGenerator(tokenizer), np.zeros((0, 9), int))
    assert inputs["mask_positions"].shape == labels.shape == weights.shape == (0, 1)


def share_is(found, probability, num_draws):
    return abs(found - probability) < DEVIATIONS * np.sqrt(probability * (1 - probability) / num_draws)


@pytest.mark.parametrize("whole_words", [False, True])
@pytest.mark.parametrize("rates", [(0.8, 0.1), (0.5, 0.2)])
def test_shares_of_masked_random_and_kept_tokens(tokenizer, rates, whole_words):
    rows = np.array([row(128, 128)] * 1500)
    rows[:, 1:-1:3] = FIRST_PIECE  # whole words of two pieces and of one
    generator = MaskedLMGenerator(
        tokenizer, mask_token_rate=rates[0], random_token_rate=rates[1], whole_words=whole_words, seed=3
    )
    inputs, labels, weights = run(generator, rows)
    is_mask = weights > 0
    found = np.take_along_axis(inputs["token_ids"], inputs["mask_positions"], axis=1)[is_mask]
    labels, size = labels[is_mask], is_mask.sum()
    assert size > 25_000
    # A random token is [MASK], or the one that was there, once in so many cases as the vocabulary has tokens.
    by_chance = rates[1] / len(VOCABULARY)
    assert share_is((found == MASK).mean(), rates[0] + by_chance, size)
    assert share_is((found == labels).mean(), 1 - sum(rates) + by_chance, size)
    others = found[(found != MASK) & (found != labels)]
    counts = np.bincount(others, minlength=len(VOCABULARY))
    seldom = np.delete(counts, [*np.unique(labels), MASK])
    assert (np.abs(seldom - size * by_chance) < DEVIATIONS * np.sqrt(size * by_chance)).all()


def test_every_token_is_selected_equally_often(tokenizer):
    num_rows, num_tokens = 4000, 42
    inputs, _, weights = run(MaskedLMGenerator(tokenizer, seed=3), [row(num_tokens, num_tokens)] * num_rows)
    counts = np.bincount(inputs["mask_positions"][weights > 0], minlength=num_tokens)[1:-1]
    assert all(share_is(count / num_rows, 6 / 40, num_rows) for count in counts)


class TestWholeWords:
    SIZES = (1, 3, 1, 2, 5, 1, 1, 4, 2, 1, 1, 6, 1, 2)

    @pytest.fixture
    def words(self):
        return np.repeat(np.arange(len(self.SIZES)), self.SIZES)

    @pytest.fixture
    def ids(self, words):
        starts = np.concatenate([[True], np.diff(words) > 0])
        return [CLS, *np.where(starts, FIRST_WORD + words, FIRST_PIECE), SEP]

    def test_all_pieces_or_none_and_no_word_that_still_fits_is_left(self, tokenizer, words, ids):
        generator = MaskedLMGenerator(tokenizer, 0.2, whole_words=True, seed=3)
        inputs, _, weights = run(generator, [ids] * 500)
        budget = round(0.2 * len(ids))
        seen = set()
        for positions, is_mask in zip(inputs["mask_positions"], weights > 0, strict=True):
            selected = words[positions[is_mask] - 1]
            taken = np.unique(selected)
            assert len(selected) == sum(self.SIZES[word] for word in taken) <= budget
            left = budget - len(selected)
            assert all(size > left for word, size in enumerate(self.SIZES) if word not in taken)
            seen |= set(taken.tolist())
        assert seen == {word for word, size in enumerate(self.SIZES) if size <= budget}

    def test_order_of_words_is_random(self, tokenizer):
        """One of three words fits, so each is taken in a third of the rows, whatever its size."""
        sizes = [2, 2, 2]
        ids = [CLS, *(FIRST_WORD if place % 2 == 0 else FIRST_PIECE for place in range(6)), SEP]
        generator = MaskedLMGenerator(tokenizer, 0.25, whole_words=True, seed=3)
        inputs, _, _ = run(generator, [ids] * 3000)
        counts = np.bincount((inputs["mask_positions"][:, 0] - 1) // 2, minlength=len(sizes))
        assert all(share_is(count / 3000, 1 / 3, 3000) for count in counts)

    def test_piece_behind_a_separator_belongs_to_the_word_before(self, tokenizer):
        """As in the reference, where a text may be cut inside a word at its front."""
        ids = [CLS, FIRST_WORD, SEP, FIRST_PIECE, SEP]
        inputs, _, weights = run(MaskedLMGenerator(tokenizer, 0.4, whole_words=True), [ids])
        assert inputs["mask_positions"].tolist() == [[1, 3]]
        assert weights.all()

    def test_first_pieces_are_a_word(self, tokenizer):
        ids = [CLS, FIRST_PIECE, FIRST_PIECE, SEP]
        assert run(MaskedLMGenerator(tokenizer, 0.5, whole_words=True), [ids])[2].tolist() == [[1.0, 1.0]]
        assert run(MaskedLMGenerator(tokenizer, 0.2, whole_words=True), [ids])[2].tolist() == [[0.0]]


class TestSeeds:
    ROWS = np.array([row(length, 60) for length in (40, 60, 33)])

    def positions(self, generator, **kwargs):
        return run(generator, self.ROWS, **kwargs)[0]["mask_positions"].tolist()

    def test_every_call_draws_anew_and_the_seed_repeats_it(self, tokenizer):
        generator = MaskedLMGenerator(tokenizer, seed=5)
        first, second = self.positions(generator), self.positions(generator)
        assert first != second
        again = MaskedLMGenerator.from_config(generator.get_config())
        assert [self.positions(again), self.positions(again)] == [first, second]
        assert self.positions(MaskedLMGenerator(tokenizer, seed=6)) not in (first, second)

    def test_global_seed(self, tokenizer):
        def drawn():
            keras.utils.set_random_seed(4)
            return self.positions(MaskedLMGenerator(tokenizer))

        assert drawn() == drawn()

    def test_epochs_of_a_dataset_differ(self, tokenizer):
        generator = MaskedLMGenerator(tokenizer, seed=5)
        dataset = tf.data.Dataset.from_tensors(as_inputs(self.ROWS)).repeat(2).map(generator, num_parallel_calls=2)
        drawn = [inputs["mask_positions"].numpy().tolist() for _ in range(2) for inputs, _, _ in dataset]
        assert len({str(positions) for positions in drawn}) == 4

    def test_given_seed(self, tokenizer):
        generator = MaskedLMGenerator(tokenizer)
        assert self.positions(generator, seed=9) == self.positions(generator, seed=9)
        assert self.positions(generator, seed=9) != self.positions(generator, seed=10)

    def test_seed_of_each_row(self, tokenizer):
        """What a row gets depends on nothing else in the batch, padding included."""
        generator = MaskedLMGenerator(tokenizer)
        inputs, labels, weights = run(generator, self.ROWS, seed=np.array([7, 8, 9]))
        alone = [row(33, 37)]
        row_inputs, row_labels, row_weights = run(generator, alone, seed=np.array([9]))
        num_masks = int(row_weights.sum())
        np.testing.assert_array_equal(row_inputs["token_ids"][0, :33], inputs["token_ids"][2, :33])
        np.testing.assert_array_equal(row_labels[0, :num_masks], labels[2, :num_masks])
        assert weights[2].sum() == num_masks


@pytest.mark.parametrize(
    ("padding", "unit"),
    [
        ("longest", {}),
        ("max_length", {"whole_words": True}),
        ("bucket", {"whole_words": True, "longest_span": 3}),
    ],
)
def test_in_graph(tokenizer, padding, unit):
    preprocessor = BertPreprocessor(tokenizer, max_length=24, padding=padding)
    generator = MaskedLMGenerator(tokenizer, seed=3, **unit)
    texts = ["word1 word2 word3", "word4 " * 9, ""]
    dataset = tf.data.Dataset.from_tensors(texts).map(lambda text: generator(preprocessor(text), seed=2))
    inputs, labels, _ = next(iter(dataset))
    expected, expected_labels, _ = generator(preprocessor(texts), seed=2)
    keras.tree.map_structure(np.testing.assert_array_equal, (inputs, labels), (expected, expected_labels))
    if padding == "max_length":
        assert dataset.element_spec[1].shape[1] == 4  # what XLA needs to know


def test_config_holds_every_argument(tokenizer):
    generator = MaskedLMGenerator(tokenizer, 0.2, mask_selection_length=7, longest_span=4, seed=3, name="masks")
    config = generator.get_config()
    arguments = set(inspect.signature(MaskedLMGenerator.__init__).parameters) - {"self", "kwargs", "masking"}
    assert arguments | set(Masking().to_dict()) <= set(config)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(generator))
    assert isinstance(again, MaskedLMGenerator)
    assert again.get_config() == config


def test_masking_is_the_same_as_its_fields(tokenizer):
    masking = Masking(mask_selection_rate=0.2, whole_words=True, seed=3)
    generator = MaskedLMGenerator(tokenizer, masking=masking, name="masks")
    assert (
        generator.get_config() == MaskedLMGenerator(tokenizer, 0.2, whole_words=True, seed=3, name="masks").get_config()
    )
    assert generator.masking == masking
    assert generator.seed == 3


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"masking": Masking(), "seed": 3}, TypeError, "`MaskedLMGenerator`: `masking` must be given without `seed`"),
        ({"mask_selection_rate": 1.0}, ValueError, "`mask_selection_rate` must be at least 0 and less than 1"),
        ({"mask_selection_length": 0}, ValueError, "`mask_selection_length` must be at least 1"),
        ({"mask_token_rate": 1.5}, ValueError, "`mask_token_rate` must be at least 0 and at most 1"),
        ({"mask_token_rate": "all"}, TypeError, "`mask_token_rate` must be a number"),
        ({"random_token_rate": 0.3}, ValueError, "must be at most 1 together with `mask_token_rate` (0.8)"),
        ({"longest_span": 0}, ValueError, "`longest_span` must be at least 1"),
        ({"span_stop_rate": 1}, ValueError, "`span_stop_rate` must be at least 0 and less than 1"),
        ({"whole_words": 1}, TypeError, "`whole_words` must be True or False"),
        ({"seed": -1}, ValueError, "`seed` must be at least 0"),
        (
            {"tokenizer": None},
            TypeError,
            "`tokenizer` must be a BertTokenizer. Received: tokenizer=None. Make",
        ),
        ({"tokenizer": BertTokenizer(SPECIAL[:4])}, ValueError, "`tokenizer` must have a mask token in its vocabulary"),
    ],
)
def test_errors(tokenizer, arguments, error, message):
    with pytest.raises(error, match=re.escape(message)):
        MaskedLMGenerator(**{"tokenizer": tokenizer, **arguments})


def test_one_row_without_a_batch(tokenizer):
    with pytest.raises(ValueError, match=re.escape('`inputs["token_ids"]` must have two axes, (batch, sequence)')):
        run(MaskedLMGenerator(tokenizer), row(5, 5))
