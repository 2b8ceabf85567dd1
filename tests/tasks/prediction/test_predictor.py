"""`predict` and `predict_stream` on many texts, in every kind of input."""

import gc
import itertools
import os
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers import (
    BertBackbone,
    BertClassifier,
    BertConfig,
    BertMaskedLM,
    BertMultipleChoice,
    BertPreprocessor,
    BertQuestionAnswerer,
    BertSentenceEncoder,
    BertTokenClassifier,
)

# The same float32 sums in batches of other sizes.
BATCH_TOLERANCE = 1e-5
STATM = Path("/proc/self/statm")
TEXTS = [" ".join(["good", "film", "bad", "night"][: 1 + row % 4] * (row % 3)) for row in range(23)]
PAIRS = list(zip(TEXTS, TEXTS[::-1], strict=True))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of five rows, so that a few texts are many blocks."""
    monkeypatch.setattr("keras_bert_layers.tasks.inputs.Inputs.block_rows", 5)
    monkeypatch.setattr("keras_bert_layers.tasks.inputs.MaskedInputs.block_rows", 5)


@pytest.fixture(scope="module")
def backbone(new_backbone):
    return new_backbone(max_sequence_length=512)


@pytest.fixture(scope="module")
def classifier(backbone, preprocessor):
    """For tests that compile nothing anew."""
    return BertClassifier(backbone, 3, preprocessor=preprocessor)


@pytest.fixture(scope="module")
def encoder(backbone, preprocessor):
    return BertSentenceEncoder(backbone, preprocessor=preprocessor)


@pytest.fixture(scope="module")
def expected(classifier):
    """The logits of all texts, computed as a plain batch."""
    return classifier(classifier.preprocessor(TEXTS)).numpy()


def steps_of(model, monkeypatch):
    """A list that will hold the shape of every step."""
    shapes = []
    step = model.predictor.step()

    def watched(ids):
        shapes.append(ids["token_ids"].shape)
        return step(ids)

    monkeypatch.setattr(model.predictor, "step", lambda *_: watched)
    return shapes


class TestPredict:
    @pytest.mark.parametrize(
        "options",
        [{}, {"batch_size": 2}, {"max_tokens_per_batch": 20}, {"batch_size": 3, "max_tokens_per_batch": 9}],
        ids=str,
    )
    def test_equals_plain_batches(self, options, classifier, expected):
        found = classifier.predict(TEXTS, **options, verbose=0)
        np.testing.assert_allclose(found, expected, atol=BATCH_TOLERANCE)

    @pytest.mark.parametrize("options", [{"run_eagerly": True}, {"jit_compile": True}], ids=str)
    def test_as_compiled(self, options, backbone, tokenizer):
        preprocessor = BertPreprocessor(tokenizer, max_length=9, padding="bucket")
        classifier = BertClassifier(backbone, 3, preprocessor=preprocessor)
        classifier.compile(**options)
        found = classifier.predict(TEXTS[:7], batch_size=4, verbose=0)
        np.testing.assert_allclose(found, classifier(preprocessor(TEXTS[:7])), atol=BATCH_TOLERANCE)

    def test_traces_once_for_all_lengths(self, classifier):
        classifier.predict(TEXTS, batch_size=4, verbose=0)
        assert classifier.predictor.step().experimental_get_tracing_count() == 1

    def test_a_compiled_task_is_traced_again(self, backbone, preprocessor):
        classifier = BertClassifier(backbone, 3, preprocessor=preprocessor)
        step = classifier.predictor.step()
        assert classifier.predictor.step() is step
        classifier.compile()
        assert classifier.predictor.step() is not step

    def test_steps_stay_within_their_bounds(self, classifier, monkeypatch):
        shapes = steps_of(classifier, monkeypatch)
        classifier.predict(TEXTS, batch_size=2, verbose=0)
        assert max(rows for rows, _ in shapes) == 2
        shapes.clear()
        classifier.predict(TEXTS, max_tokens_per_batch=18, verbose=0)
        assert all(rows * width <= 18 for rows, width in shapes)
        assert len({width for _, width in shapes}) > 3, "nothing is padded further than its batch needs"

    def test_every_kind_of_input(self, classifier, expected):
        dataset = tf.data.Dataset.from_tensor_slices(TEXTS).batch(4)
        labelled = tf.data.Dataset.from_tensor_slices((TEXTS, [0] * len(TEXTS))).batch(7)
        for x in (np.array(TEXTS), tf.constant(TEXTS), (text for text in TEXTS), iter(TEXTS), dataset, labelled):
            np.testing.assert_allclose(classifier.predict(x, verbose=0), expected, atol=BATCH_TOLERANCE)

    @pytest.mark.usefixtures("traces_nothing")
    def test_pairs(self, classifier, encoder):
        columns = (TEXTS[:12], TEXTS[11::-1])
        dataset = tf.data.Dataset.from_tensor_slices((columns,)).batch(4)
        logits = classifier(classifier.preprocessor(columns))
        first, second = (encoder(encoder.preprocessor(texts)).numpy() for texts in columns)
        for kind in (tuple, lambda columns: zip(*columns, strict=True), lambda _: dataset):
            np.testing.assert_allclose(classifier.predict(kind(columns), verbose=0), logits, atol=BATCH_TOLERANCE)
            cosines = encoder.predict(kind(columns), verbose=0)
            np.testing.assert_allclose(cosines, (first * second).sum(axis=1), atol=BATCH_TOLERANCE)

    def test_nothing(self, classifier, encoder):
        assert classifier.predict(iter([]), verbose=0).shape == (0, 3)
        assert encoder.predict(([], []), verbose=0).shape == (0,)
        assert list(encoder.predict_stream([])) == []

    def test_first_steps(self, classifier, expected):
        dataset = tf.data.Dataset.from_tensor_slices(TEXTS).batch(4)
        for x, options in ((dataset, {}), (TEXTS, {"batch_size": 4}), (itertools.cycle(TEXTS), {"batch_size": 4})):
            np.testing.assert_allclose(
                classifier.predict(x, steps=3, verbose=0, **options), expected[:12], atol=BATCH_TOLERANCE
            )

    def test_a_text_that_is_much_longer_than_the_others(self, classifier):
        """NumPy's own strings would give all of them the room of the longest: 40 GB."""
        texts = ["good"] * 10_000 + ["bad " * 250_000]
        assert text_sizes(classifier.pipeline.columns(texts)) == text_sizes(texts)


def text_sizes(texts):
    return sum(map(len, texts))


class TestStream:
    def test_rows_in_order(self, classifier, expected):
        for x in (TEXTS, iter(TEXTS), tf.data.Dataset.from_tensor_slices(TEXTS).batch(4)):
            rows = list(classifier.predict_stream(x))
            np.testing.assert_allclose(rows, expected, atol=BATCH_TOLERANCE)

    def test_no_more_than_a_block_is_read_ahead(self, classifier):
        read = []

        def texts():
            for row in itertools.count():
                read.append(row)
                yield TEXTS[row % len(TEXTS)]

        rows = classifier.predict_stream(texts())
        assert read == []
        next(rows)
        assert len(read) == 5
        list(itertools.islice(rows, 4))
        assert len(read) == 5
        next(rows)
        assert len(read) == 10

    def test_what_the_generator_raises_comes_through(self, classifier):
        error = OSError("the disk is gone")

        def texts():
            yield from TEXTS[:7]
            raise error

        rows = classifier.predict_stream(texts())
        assert len(list(itertools.islice(rows, 5))) == 5
        with pytest.raises(OSError, match="gone") as caught:
            next(rows)
        assert caught.value is error
        with pytest.raises(OSError, match="gone"):
            classifier.predict(texts(), verbose=0)

    @pytest.mark.slow
    @pytest.mark.usefixtures("traces_nothing")
    def test_rows_of_every_task(self, backbone, preprocessor):
        """Each gives one row for one row; what is beyond a row's own width is left to `predict`."""
        words = [["good", "film"], [], ["bad"], ["a", "good", "night"]] * 3
        tagger = BertTokenClassifier(backbone, ["O", "B-a", "I-a"], preprocessor=preprocessor)
        logits = tagger.predict(words, verbose=0)
        for row, found in enumerate(tagger.predict_stream(iter(words))):
            assert found.shape == (len(words[row]), 3)
            np.testing.assert_allclose(found, logits[row, : len(found)], atol=BATCH_TOLERANCE)
        assert tagger.predict_tags(iter(words)) == tagger.predict_tags(words)
        texts = ["good [MASK]", "bad film", "[MASK] [MASK] night"] * 3
        masked_lm = BertMaskedLM(backbone, preprocessor)
        logits = masked_lm.predict(iter(texts), verbose=0)
        assert logits.shape == (9, 2, len(preprocessor.tokenizer.get_config()["vocabulary"]))
        np.testing.assert_allclose(logits, masked_lm.predict_on_batch(texts), atol=BATCH_TOLERANCE)
        rows = [("good", ["film", "bad night"]), ("bad", ["a", "night", "film"])] * 4
        chooser = BertMultipleChoice(backbone, preprocessor=preprocessor)
        logits = chooser.predict(([prompt for prompt, _ in rows], [choices for _, choices in rows]), verbose=0)
        np.testing.assert_allclose(chooser.predict(iter(rows), verbose=0), logits, atol=BATCH_TOLERANCE)

    @pytest.mark.usefixtures("traces_nothing")
    def test_windows_of_questions(self, backbone, preprocessor):
        answerer = BertQuestionAnswerer(backbone, preprocessor)
        rows = [("good ?", "a film . " * size) for size in (1, 4, 2, 6, 1, 1, 3)]
        windows = answerer.predict(iter(rows), batch_size=3, verbose=0)
        found = list(answerer.predict_stream(iter(rows)))
        counts = answerer.preprocessor.num_windows(tuple(map(list, zip(*rows, strict=True)))).numpy()
        assert [len(row["start_logits"]) for row in found] == counts.tolist()
        assert len(windows["start_logits"]) == counts.sum() > len(rows)
        starts = np.concatenate([[0], counts.cumsum()])
        for row, start in zip(found, starts, strict=False):
            width = row["end_logits"].shape[1]
            of_row = windows["end_logits"][start : start + len(row["end_logits"]), :width]
            np.testing.assert_allclose(row["end_logits"], of_row, atol=BATCH_TOLERANCE)


class TestProgress:
    def test_bar_over_rows(self, classifier, capsys):
        classifier.predict(TEXTS)
        assert "23/23" in capsys.readouterr().out
        classifier.predict(iter(TEXTS), verbose=1)
        assert "23/Unknown" in capsys.readouterr().out
        list(classifier.predict_stream(TEXTS, verbose=2))
        assert capsys.readouterr().out.count("23/23") == 1
        classifier.predict(TEXTS, verbose=0)
        list(classifier.predict_stream(TEXTS))
        assert capsys.readouterr().out == ""

    def test_callbacks(self, classifier):
        told = []

        class Told(keras.callbacks.Callback):
            def on_predict_begin(self, logs=None):
                told.append("begin")

            def on_predict_batch_end(self, batch, logs=None):
                told.append((batch, len(logs["outputs"])))

            def on_predict_end(self, logs=None):
                told.append(self.model)

        classifier.predict(TEXTS[:8], batch_size=3, verbose=0, callbacks=[Told()])
        assert told == ["begin", (0, 3), (1, 2), (2, 3), classifier]


def resident_memory():
    """In bytes."""
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.exhaustive
def test_memory_stays_flat(vocabulary, preprocessor, monkeypatch):
    """200,000 texts through blocks of the usual size; the outputs alone would take 100 MB if they were kept."""
    monkeypatch.undo()
    if not STATM.exists():
        pytest.skip("reads the memory of the process as Linux shows it")
    keras.utils.set_random_seed(3)
    config = BertConfig(vocabulary_size=len(vocabulary), hidden_dim=16, num_layers=1, num_heads=2, intermediate_dim=16)
    encoder = BertSentenceEncoder(BertBackbone(config), projection_dim=128, preprocessor=preprocessor)
    texts = (f"good film {row}" for row in range(200_000))
    rows = encoder.predict_stream(texts)
    list(itertools.islice(rows, 20_000))
    gc.collect()
    peak = before = resident_memory()
    for row, _ in enumerate(rows):
        if row % 4096 == 0:
            peak = max(peak, resident_memory())
    assert row == 200_000 - 20_000 - 1
    assert peak - before < 30 * 2**20


class TestErrors:
    @pytest.mark.usefixtures("traces_nothing")
    def test_row_numbers_count_on_from_block_to_block(self, classifier, backbone, preprocessor):
        with pytest.raises(TypeError, match="texts must be strings. Received: None in row 12"):
            classifier.predict(iter([*TEXTS[:12], None]), verbose=0)
        with pytest.raises(TypeError, match="texts must be strings. Received: None in row 7"):
            list(classifier.predict_stream(iter([*PAIRS[:7], ("a", None)])))
        with pytest.raises(ValueError, match="as many texts as the first. Received: one text in row 7, and 2 in row 0"):
            list(classifier.predict_stream(iter([*PAIRS[:7], "a"])))
        tagger = BertTokenClassifier(backbone, ["O", "B-a", "I-a"], preprocessor=preprocessor)
        with pytest.raises(TypeError, match=r"words must be a list of strings. Received: .* in row 6"):
            tagger.predict(iter([["a"]] * 6 + [["a", 1]]), verbose=0)
        chooser = BertMultipleChoice(backbone, preprocessor=preprocessor)
        with pytest.raises(ValueError, match="a choice that is not empty. Received: none in row 6"):
            chooser.predict(iter([("good", ["a", "b"])] * 6 + [("good", [""])]), verbose=0)
        answerer = BertQuestionAnswerer(backbone, preprocessor)
        with pytest.raises(ValueError, match="tokens in row 6"):
            answerer.predict(iter([("good", "a film")] * 6 + [("good " * 50, "a film")]), verbose=0)

    def test_sizes(self, classifier):
        for name in ("batch_size", "max_tokens_per_batch", "steps"):
            with pytest.raises(ValueError, match=f"`{name}` must be at least 1. Received: {name}=0"):
                classifier.predict(TEXTS, **{name: 0})
        with pytest.raises(TypeError, match="`max_tokens_per_batch` must be an integer"):
            classifier.predict_stream(TEXTS, max_tokens_per_batch="many")

    def test_ids(self, classifier, preprocessor):
        with pytest.raises(ValueError, match="`max_tokens_per_batch` must be None for ids"):
            classifier.predict(preprocessor(TEXTS), max_tokens_per_batch=9)
        with pytest.raises(ValueError, match="`x` must be texts. .* `predict` takes ids"):
            classifier.predict_stream(preprocessor(TEXTS))

    def test_batches_from_a_generator(self, classifier):
        with pytest.raises(ValueError, match="texts must be one column"):
            classifier.predict(iter([["a", "b"], ["a", "bad"]]), verbose=0)

    def test_triplets_to_an_encoder(self, encoder):
        with pytest.raises(ValueError, match="`x` must be texts or pairs of texts. Received: x='a tuple of 3'"):
            encoder.predict(iter([("a", "b", "c")]), verbose=0)
