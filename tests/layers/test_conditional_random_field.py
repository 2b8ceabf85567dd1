"""`ConditionalRandomField` against sums and maxima over all rows of tags, one by one in float64."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers.layers import ConditionalRandomField

NUM_TAGS = 5
LENGTH = 6
TAG_NAMES = ["O", "B-a", "I-a", "B-b", "I-b"]
BIOES_NAMES = ["O", "B-a", "I-a", "E-a", "S-a"]
# Sums of some twenty float32 numbers of size 1, against float64.
FLOAT32 = 1e-5
# The same behind 512 steps, each with probabilities that are rounded.
LONG = 1e-4
FORBIDDEN = -1e4
# No gaps, a gap at each place, a short row, one tag only, none.
MASK = np.array(
    [[1, 1, 1, 1, 1, 1], [0, 1, 1, 0, 0, 1], [1, 0, 1, 0, 1, 0], [1, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0] * 6]
)


@pytest.fixture(params=[None, TAG_NAMES, BIOES_NAMES], ids=["free", "bio", "bioes"])
def field(request):
    return randomised(ConditionalRandomField(NUM_TAGS, tag_names=request.param))


def randomised(field):
    generator = np.random.default_rng(8)
    field.build((None, None, field.num_tags))
    field.set_weights([generator.normal(size=weight.shape) for weight in field.weights])
    return field


@pytest.fixture
def emissions(draw):
    return draw(len(MASK), LENGTH, NUM_TAGS) * 2


def all_rows(field, emissions):
    """Every row of tags of one text without gaps, and its score; `[R, S]` and `[R]`."""
    transitions, starts, ends = (np.asarray(weight, "float64") for weight in field.weights)
    if not len(emissions):
        return np.zeros((1, 0), int), np.zeros(1)
    rows = np.array(list(itertools.product(range(NUM_TAGS), repeat=len(emissions))))
    scores = starts[rows[:, 0]] + ends[rows[:, -1]] + emissions[np.arange(len(emissions)), rows].sum(axis=1)
    scores += transitions[rows[:, :-1], rows[:, 1:]].sum(axis=1)
    if field.tag_names is not None:
        scores += FORBIDDEN * np.array([num_violations(row, field.tag_names) for row in rows])
    return rows, scores


def logsumexp(scores):
    return scores.max() + np.log(np.exp(scores - scores.max()).sum())


def num_violations(row, field_names):
    """Neighbours that do not fit: in BIOES an entity that was begun continues, in BIO an "I" follows its own label."""

    def fits(before, name):
        if field_names == BIOES_NAMES:
            return (before[0] in "BI") == (name[0] in "IE")
        return name[0] != "I" or before[1:] == name[1:]

    names = [field_names[tag] for tag in row]
    return sum(not fits(before, name) for before, name in itertools.pairwise(["O", *names, "O"]))


def test_contract(check_layer, draw, tmp_path):
    check_layer(
        lambda **kwargs: ConditionalRandomField(NUM_TAGS, tag_names=TAG_NAMES, **kwargs),
        {
            "emissions": draw(6, 7, NUM_TAGS),
            "padding_mask": np.eye(6, 7, dtype="int32")[::-1] | np.eye(6, 7, dtype="int32"),
        },
        output_shape=(6, 7, NUM_TAGS),
        output_dtype="float32",
        num_weights=3,
        tmp_path=tmp_path,
    )


def test_log_likelihood_equals_brute_force(field, emissions):
    tags = np.random.default_rng(1).integers(0, NUM_TAGS, MASK.shape)
    tags[0] = [0, 1, 2, 2, 3, 0]
    found = np.asarray(field.log_likelihood(emissions, np.where(MASK, tags, -100), MASK))
    for row, real in enumerate(MASK.astype(bool)):
        rows, scores = all_rows(field, emissions[row, real])
        given = scores[(rows == tags[row, real]).all(axis=1)]
        np.testing.assert_allclose(found[row], given[0] - logsumexp(scores), rtol=1e-6, atol=FLOAT32)
    assert found[-1] == 0


def test_all_rows_of_tags_have_probability_one(field, emissions):
    rows, _ = all_rows(field, emissions[0, :4])
    found = field.log_likelihood(np.repeat(emissions[:1, :4], len(rows), axis=0), rows)
    np.testing.assert_allclose(np.exp(found).sum(), 1, atol=FLOAT32)


def test_viterbi_equals_brute_force(field, emissions):
    found = np.asarray(field.viterbi(emissions, MASK))
    assert found.dtype == np.int32
    for row, real in enumerate(MASK.astype(bool)):
        rows, scores = all_rows(field, emissions[row, real])
        np.testing.assert_array_equal(found[row, real], rows[scores.argmax()])
        assert (found[row, ~real] == 0).all()


def test_probabilities_equal_brute_force(field, emissions):
    found = np.asarray(field(emissions, MASK))
    for row, real in enumerate(MASK.astype(bool)):
        rows, scores = all_rows(field, emissions[row, real])
        shares = np.exp(scores - logsumexp(scores))
        expected = np.stack([(shares[:, None] * (rows == tag)).sum(axis=0) for tag in range(NUM_TAGS)], axis=-1)
        np.testing.assert_allclose(found[row, real], expected, atol=FLOAT32)
        assert (found[row, ~real] == 0).all()


def test_cross_entropy_of_the_logits_is_the_loss(field, emissions):
    tags = np.array([[0, 1, 2, 2, 3, 0]] * len(MASK))
    logits = field.logits_given_past(emissions, tags, MASK)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-100)
    expected = -np.asarray(field.log_likelihood(emissions, tags, MASK)).sum() / MASK.sum()
    np.testing.assert_allclose(loss(np.where(MASK, tags, -100), logits), expected, rtol=1e-6)


def test_fresh_weights_are_a_softmax(emissions):
    field = ConditionalRandomField(NUM_TAGS)
    np.testing.assert_allclose(field(emissions), keras.ops.softmax(emissions), atol=FLOAT32)


@pytest.mark.parametrize(("names", "seldom"), [(TAG_NAMES, {2, 4}), (BIOES_NAMES, {1, 2, 3})])
def test_what_names_rule_out_never_comes(draw, names, seldom):
    field = randomised(ConditionalRandomField(NUM_TAGS, tag_names=names))
    tags = np.asarray(field.viterbi(draw(40, 9, NUM_TAGS) * 30))
    assert sum(num_violations(row, names) for row in tags) == 0
    assert seldom <= set(tags.ravel())


def likelihood_and_gradients(field, emissions, tags, mask=None, **options):
    """The sum over the rows; its gradient by emissions, transitions, starts and ends; and the probabilities."""

    @tf.function(**options)
    def run(emissions):
        with tf.GradientTape() as tape:
            tape.watch(emissions)
            value = tf.reduce_sum(field.log_likelihood(emissions, tags, mask))
        gradients = tape.gradient(value, [emissions, *(weight.value for weight in field.weights)])
        return value, gradients, field(emissions, mask)

    value, gradients, probabilities = run(tf.constant(emissions))
    return float(value), [np.asarray(gradient) for gradient in gradients], np.asarray(probabilities)


@pytest.mark.usefixtures("traces_nothing")
def test_gradients_equal_brute_force(field, emissions):
    tags = np.random.default_rng(1).integers(0, NUM_TAGS, MASK.shape)
    _, found, _ = likelihood_and_gradients(field, emissions, tags, MASK)
    expected = [np.zeros_like(gradient, "float64") for gradient in found]
    for row, real in enumerate(MASK.astype(bool)):
        rows, scores = all_rows(field, emissions[row, real])
        shares = (rows == tags[row, real]).all(axis=1) - np.exp(scores - logsumexp(scores))  # [R], given less expected
        for position, place in enumerate(np.flatnonzero(real)):
            np.add.at(expected[0][row, place], rows[:, position], shares)
        for position in range(1, real.sum()):
            np.add.at(expected[1], (rows[:, position - 1], rows[:, position]), shares)
        if real.any():
            np.add.at(expected[2], rows[:, 0], shares)
            np.add.at(expected[3], rows[:, -1], shares)
    for gradient, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(gradient, right, atol=FLOAT32)


@pytest.mark.parametrize("jit_compile", [pytest.param(False, marks=pytest.mark.exhaustive), True])
def test_gradients_are_finite_and_right_at_length_512(jit_compile, draw):
    """The gradient by emissions is the tag given less its probability, which is computed in another way."""
    field = randomised(ConditionalRandomField(NUM_TAGS, tag_names=TAG_NAMES))
    emissions = draw(2, 512, NUM_TAGS) * 20
    tags = emissions.argmax(axis=-1)
    value, gradients, probabilities = likelihood_and_gradients(field, emissions, tags, jit_compile=jit_compile)
    of_emissions, *of_weights = gradients
    assert np.isfinite(value)
    assert value < 0
    np.testing.assert_allclose(of_emissions, np.eye(NUM_TAGS)[tags] - probabilities, atol=LONG)
    for gradient in of_weights:
        assert np.isfinite(gradient).all()
        assert np.abs(gradient).max() > 0


def test_forbidden_labels_have_a_finite_loss_and_gradient(draw):
    field = randomised(ConditionalRandomField(NUM_TAGS, tag_names=TAG_NAMES))
    emissions = tf.constant(draw(1, 3, NUM_TAGS))
    with tf.GradientTape() as tape:
        tape.watch(emissions)
        value = field.log_likelihood(emissions, [[4, 2, 4]])
    assert FORBIDDEN * 4 < value[0] < FORBIDDEN * 2
    assert np.isfinite(tape.gradient(value, emissions)).all()


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "bfloat16"])
def test_float32_inside_under_every_policy(dtype, emissions):
    field = randomised(ConditionalRandomField(NUM_TAGS, dtype=dtype))
    same = ConditionalRandomField(NUM_TAGS)
    same.build((None, None, NUM_TAGS))
    same.set_weights([np.asarray(keras.ops.cast(weight, "float32")) for weight in field.weights])
    np.testing.assert_array_equal(field(emissions), same(emissions))
    tags = np.zeros(emissions.shape[:2], "int32")
    np.testing.assert_array_equal(field.log_likelihood(emissions, tags), same.log_likelihood(emissions, tags))


def test_a_row_does_not_depend_on_its_neighbours_or_padding(field, emissions):
    alone = field(emissions[1:2, :6], MASK[1:2])
    padded = np.pad(emissions, [(0, 0), (0, 3), (0, 0)], constant_values=7)
    np.testing.assert_allclose(field(padded, np.pad(MASK, [(0, 0), (0, 3)]))[1:2, :6], alone, atol=FLOAT32)


@pytest.mark.parametrize(
    "field",
    [None, TAG_NAMES, pytest.param(BIOES_NAMES, marks=pytest.mark.slow)],
    ids=["free", "bio", "bioes"],
    indirect=True,
)
def test_lengths_may_be_unknown_where_the_graph_is_made(field, emissions):
    unknown = [tf.TensorSpec([None, None, NUM_TAGS]), tf.TensorSpec([None, None], tf.int32)]

    @tf.function(input_signature=[*unknown, unknown[1]])
    def run(emissions, tags, mask):
        return field.log_likelihood(emissions, tags, mask), field.viterbi(emissions, mask), field(emissions, mask)

    tags = np.zeros(MASK.shape, "int32")
    found = run(emissions, tags, MASK.astype("int32"))
    expected = field.log_likelihood(emissions, tags, MASK), field.viterbi(emissions, MASK), field(emissions, MASK)
    for value, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, right, rtol=1e-6, atol=FLOAT32)


def test_errors():
    with pytest.raises(
        ValueError, match="`ConditionalRandomField`: `num_tags` must be at least 2. Received: num_tags=1"
    ):
        ConditionalRandomField(1)
    with pytest.raises(ValueError, match="`ConditionalRandomField`: `tag_names` must be 4 names"):
        ConditionalRandomField(4, tag_names=TAG_NAMES)
    with pytest.raises(ValueError, match="`ConditionalRandomField`: `tag_names` must hold at least one name, each"):
        ConditionalRandomField(2, tag_names=["B-a", "B-a"])
    with pytest.raises(ValueError, match="`ConditionalRandomField`: `scheme` must be one of"):
        ConditionalRandomField(2, tag_names=["O", "a"], scheme="no")
    with pytest.raises(ValueError, match=r"`emissions.shape` must be \(batch, sequence, 5\). Received: .*\(2, 3, 4\)"):
        ConditionalRandomField(5).viterbi(np.zeros((2, 3, 4), "float32"))
