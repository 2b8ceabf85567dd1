"""Tasks that read long texts through windows, against a loop over windows that is written here."""

import contextlib
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers import BertClassifier, BertCrossEncoder, BertDualEncoder, BertPreprocessor, BertSentenceEncoder
from keras_bert_layers.layers import WindowPooling
from keras_bert_layers.preprocessing import HeadTail, Windows

# The same float32 sums in another order, through two layers.
TOLERANCE = 1e-5
MAX_LENGTH, STRIDE = 9, 2
WORDS = ["a", "good", "bad", "film", "night", ".", "!", "?"]
SIZES = [3, 12, 0, 25, 7, 9]
QUERIES = ["a film ?", "bad", "good night", "film", "", "?"]
POOLINGS = {"mean": np.mean, "max": np.max}


def text(size, seed=0):
    return " ".join(np.random.default_rng([seed, size]).choice(WORDS, size))


TEXTS = [text(size) for size in SIZES]
SHORT = [text(size) for size in (3, 0, 7, 5)]
PER_PART = 32  # windows
MANY = text(5 * PER_PART * (MAX_LENGTH - 2 - STRIDE))


def query_of(task):
    """What `"attention"` learns."""
    return next(layer for layer in task._flatten_layers() if isinstance(layer, WindowPooling)).query


@pytest.fixture(scope="module")
def make(new_backbone, tokenizer):
    """A function that makes a task with the same weights each time; with a query of attention that weighs windows."""

    def make(task, long_texts=None, **options):
        backbone = new_backbone(seed=5)
        preprocessor = options.pop("preprocessor", BertPreprocessor(tokenizer, MAX_LENGTH))
        keras.utils.set_random_seed(6)
        made = task(backbone, preprocessor=preprocessor, long_texts=long_texts, **options)
        if getattr(long_texts, "pooling", None) == "attention":
            query = query_of(made)
            query.assign(np.linspace(-2, 3, query.shape[0], dtype="float32"))
        return made

    return make


def windows_of(tokenizer, query, read):
    """The windows of a text, or of a query and a text, as ids `(1, tokens)`, written as a loop."""
    special = {name: getattr(tokenizer, f"{name}_id") for name in ("start", "separator")}
    before = [] if query is None else [*np.asarray(tokenizer.tokenize(query)).tolist(), special["separator"]]
    tokens = np.asarray(tokenizer.tokenize(read)).tolist()
    room, begin = MAX_LENGTH - 2 - len(before), 0
    while True:
        part = tokens[begin : begin + room]
        ids = np.array([[special["start"], *before, *part, special["separator"]]], "int32")
        segments = np.arange(ids.shape[1])[None] > len(before) if query is not None else np.zeros_like(ids)
        yield {"token_ids": ids, "segment_ids": segments.astype("int32"), "padding_mask": np.ones_like(ids)}
        if begin + room >= len(tokens):
            return
        begin += room - STRIDE


def pooled(features, pooling, query=None):
    """The pooled features of the windows of one text `(windows, features)`."""
    features = np.concatenate(features)
    if pooling != "attention":
        return POOLINGS[pooling](features, axis=0)
    powers = np.exp(features @ query)
    return powers @ features / powers.sum()


OUTPUTS = {}


def outputs_of(task, read, query=None):
    """The backbone's outputs for each window of a text, computed once: all tasks begin with the same weights."""
    if (read, query) not in OUTPUTS:
        OUTPUTS[read, query] = [
            task.backbone({name: keras.ops.convert_to_tensor(ids) for name, ids in window.items()})
            for window in windows_of(task.preprocessor.tokenizer, query, read)
        ]
    return OUTPUTS[read, query]


def expected_of(task, texts, pooling, queries=None):
    """The outputs of a task by a loop over texts and windows."""
    query = np.asarray(query_of(task)) if pooling == "attention" else None
    found = []
    for row, read in enumerate(texts):
        outputs = outputs_of(task, read, queries and queries[row])
        if isinstance(task, BertSentenceEncoder):
            vector = pooled([np.mean(each["sequence_output"], axis=1) for each in outputs], pooling, query)
            found.append(vector / np.linalg.norm(vector))
            continue
        dense = task.get_layer("classification_head").dense
        kernel, bias = np.asarray(dense.kernel), np.asarray(dense.bias)
        features = [np.asarray(each["pooled_output"]) for each in outputs]
        if isinstance(task, BertCrossEncoder):
            found.append(pooled([each @ kernel + bias for each in features], pooling, query))
        else:
            found.append(pooled(features, pooling, query) @ kernel + bias)
    return np.stack(found)


@pytest.mark.parametrize("pooling", ["mean", "max", "attention"])
@pytest.mark.parametrize("task", [BertClassifier, BertSentenceEncoder])
def test_texts_of_any_length_are_those_of_a_loop_over_windows(make, task, pooling, traces_nothing):
    options = {"num_classes": 3} if task is BertClassifier else {}
    made = make(task, Windows(stride=STRIDE, pooling=pooling), **options)
    expected = expected_of(made, TEXTS, pooling)
    np.testing.assert_allclose(made.predict(TEXTS, verbose=0), expected, atol=TOLERANCE)
    if pooling == "attention":
        np.testing.assert_allclose(list(made.predict_stream(TEXTS, batch_size=3)), expected, atol=TOLERANCE)
    ids = made.pipeline.tokens(tf.constant(TEXTS))
    assert ids["token_ids"].shape == (6, 5, MAX_LENGTH)
    np.testing.assert_allclose(np.asarray(made(ids)), expected, atol=TOLERANCE)
    answers = made.answer(TEXTS)
    probabilities = np.exp(expected) / np.exp(expected).sum(axis=1, keepdims=True)
    name, values = ("probabilities", probabilities) if task is BertClassifier else ("embedding", expected)
    np.testing.assert_allclose(answers[name], values, atol=TOLERANCE)


@pytest.mark.parametrize("pooling", ["mean", "max", "attention"])
def test_documents_are_scored_with_their_query_in_each_window(make, pooling, traces_nothing):
    reranker = make(BertCrossEncoder, Windows(stride=STRIDE, pooling=pooling))
    expected = expected_of(reranker, TEXTS, pooling, QUERIES)
    np.testing.assert_allclose(reranker.predict((QUERIES, TEXTS), verbose=0), expected, atol=TOLERANCE)
    scores = reranker.answer((QUERIES, TEXTS))["score"]
    np.testing.assert_allclose(scores, 1 / (1 + np.exp(-expected[:, 0])), atol=TOLERANCE)


def test_a_document_ranks_by_its_best_window(make, traces_nothing):
    reranker = make(BertCrossEncoder, Windows(stride=STRIDE))
    assert reranker.long_texts.pooling == "max"
    documents = [MANY[:300], TEXTS[3], TEXTS[0]]
    found = {row["corpus_id"]: row["score"] for row in reranker.rank("film", documents)}
    scores = 1 / (1 + np.exp(-expected_of(reranker, documents, "max", ["film"] * 3)[:, 0]))
    np.testing.assert_allclose([found[row] for row in range(3)], scores, atol=TOLERANCE)


def test_more_windows_than_are_computed_at_once(make, monkeypatch, traces_nothing):
    tokens = PER_PART * MAX_LENGTH
    monkeypatch.setattr("keras_bert_layers.tasks.prediction.windows.default_max_tokens", lambda: tokens)
    encoder = make(BertSentenceEncoder, Windows(stride=STRIDE), pooling="cls")
    assert encoder.pipeline.ids(tf.constant([MANY]))["token_ids"].shape[0] > 4 * PER_PART
    (vector,) = encoder.predict([MANY], batch_size=PER_PART, verbose=0)
    sizes = []
    encoded = encoder.predictor.part((None, "encoded"))
    call = encoded.call
    encoded.call = lambda ids, **options: sizes.append(len(ids["token_ids"])) or call(ids, **options)
    np.testing.assert_allclose(encoder.answer(MANY)["embedding"], vector, atol=TOLERANCE)
    assert max(sizes) == PER_PART
    assert len(sizes) == 5


def test_texts_of_a_block_are_pooled_a_few_at_a_time(make, monkeypatch, traces_nothing):
    monkeypatch.setattr("keras_bert_layers.tasks.prediction.windows._WINDOWS_POOLED_AT_ONCE", 3)
    encoder = make(BertSentenceEncoder, Windows(stride=STRIDE))
    expected = expected_of(encoder, TEXTS, "mean")
    np.testing.assert_allclose(encoder.predict(TEXTS, verbose=0), expected, atol=TOLERANCE)
    assert encoder.predict([], verbose=0).shape == (0, 15)


OTHER_RULES = ["head_tail", Windows(stride=0, pooling="attention")]


@pytest.mark.parametrize(
    "rule", ["windows", *(pytest.param(rule, marks=pytest.mark.slow) for rule in OTHER_RULES)], ids=str
)
def test_texts_that_fit_have_the_outputs_of_a_task_without_a_rule_bit_for_bit(make, rule, eagerly):
    """The outputs of graphs, and answers without."""
    plain, made = (make(BertClassifier, each, num_classes=3) for each in (None, rule))
    np.testing.assert_array_equal(made.predict(SHORT, verbose=0), plain.predict(SHORT, verbose=0))
    with eagerly():
        before, now = plain.answer(SHORT), made.answer(SHORT)
    np.testing.assert_array_equal(before["probabilities"], now["probabilities"])


@pytest.mark.slow
@pytest.mark.parametrize("task", [BertCrossEncoder, BertSentenceEncoder, BertDualEncoder])
def test_short_texts_are_unchanged_in_every_task(make, task, eagerly):
    x = (["a"] * 4, ["a film", "", "night ?", "bad"]) if task is BertCrossEncoder else SHORT
    plain, *others = (make(task, rule) for rule in (None, "head_tail", "windows"))
    predicted = plain.predict(x, verbose=0)
    with eagerly():
        answers = plain.answer(x)
    (name,) = answers
    for made in others:
        np.testing.assert_array_equal(made.predict(x, verbose=0), predicted, err_msg=str(made.long_texts))
        with eagerly():
            np.testing.assert_array_equal(made.answer(x)[name], answers[name], err_msg=str(made.long_texts))


@pytest.mark.parametrize("side", ["query", "document"])
def test_each_side_of_a_dual_encoder_has_windows_of_its_own_length(make, tokenizer, side, traces_nothing):
    documents = BertPreprocessor(tokenizer, 12)
    dual = make(BertDualEncoder, Windows(stride=STRIDE), document_preprocessor=documents)
    plain = make(
        BertSentenceEncoder,
        Windows(stride=STRIDE),
        preprocessor=documents if side == "document" else BertPreprocessor(tokenizer, MAX_LENGTH),
    )
    encode = dual.encode_documents if side == "document" else dual.encode_queries
    expected = plain.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(encode(TEXTS, verbose=0), expected, atol=TOLERANCE)
    signature = next(each for each in dual.signatures() if each.name == side)
    np.testing.assert_allclose(signature.function(tf.constant(TEXTS))["embedding"], expected, atol=TOLERANCE)


def test_a_training_step_has_the_loss_of_its_windows(make, train_eagerly):
    classifier = make(BertClassifier, Windows(stride=STRIDE, max_windows=2), num_classes=2)
    labels = np.array([0, 1, 1, 0, 1, 0])
    features = []
    for read in TEXTS:
        windows = outputs_of(classifier, read)
        windows = windows if len(windows) < 3 else [windows[0], windows[-1]]
        features.append(np.mean([np.asarray(each["pooled_output"]) for each in windows], axis=0))
    dense = classifier.get_layer("classification_head").dense
    logits = np.concatenate(features) @ np.asarray(dense.kernel) + np.asarray(dense.bias)
    log_sums = np.log(np.exp(logits).sum(axis=1))
    expected = np.mean(log_sums - logits[np.arange(6), labels])
    classifier.compile(keras.optimizers.Adam(2e-2))
    losses = [logs["loss"] for logs in train_eagerly(classifier, TEXTS, labels, steps=6)]
    np.testing.assert_allclose(losses[0], expected, atol=TOLERANCE)
    assert losses[-1] < losses[0]


def test_evaluation_reads_all_windows(make, trains_and_evaluates_eagerly):
    classifier = make(BertClassifier, Windows(stride=STRIDE, max_windows=1), num_classes=2)
    trains_and_evaluates_eagerly(classifier)
    labels = np.array([0, 1, 1, 0, 1, 0])
    logits = expected_of(classifier, TEXTS, "mean")
    expected = np.mean(np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(6), labels])
    loss, _ = classifier.evaluate(TEXTS, labels, verbose=0)
    np.testing.assert_allclose(loss, expected, atol=TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "x", "y"),
    [
        (BertClassifier, TEXTS, [0, 1, 1, 0, 1, 0]),
        (BertCrossEncoder, (QUERIES, TEXTS), [0.0, 1, 1, 0, 1, 0]),
        (BertSentenceEncoder, (QUERIES, TEXTS), None),
        (BertDualEncoder, (QUERIES, TEXTS, TEXTS[::-1]), None),
    ],
)
def test_fit_learns_and_the_task_is_saved_and_exported_with_its_rule(make, task, x, y, tmp_path, eagerly):
    """The first task trains in graph."""
    options = {"num_classes": 2} if task is BertClassifier else {}
    made = make(task, Windows(stride=1, pooling="attention", max_windows=3), **options)
    made.compile(keras.optimizers.Adam(2e-2))
    before = np.array(query_of(made))
    with contextlib.nullcontext() if task is BertClassifier else eagerly():
        history = made.fit(x, y, batch_size=3, epochs=6, verbose=0, group_by_length=True).history
    assert history["loss"][-1] < history["loss"][0]
    assert np.any(np.asarray(query_of(made)) != before)
    made.save(tmp_path / "task.keras")
    loaded = keras.models.load_model(tmp_path / "task.keras")
    assert loaded.long_texts == made.long_texts
    rows = x if task is BertCrossEncoder else TEXTS
    with eagerly():
        expected, answers = made.predict(rows, verbose=0), made.answer(rows)
        np.testing.assert_array_equal(loaded.predict(rows, verbose=0), expected)
    loaded.export(tmp_path / "served", max_bytes=None, warm_up=False)
    signatures = tf.saved_model.load(str(tmp_path / "served")).signatures
    named = dict(zip(made.text_inputs(), rows if isinstance(rows, tuple) else (rows,), strict=True))
    named = {name: tf.constant(column) for name, column in named.items()}
    served = signatures["serving_default"](**named)
    for name, values in answers.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(served[name], values, atol=TOLERANCE)
    ids = signatures["tokenize"](**named)
    assert ids["token_ids"].shape.rank == 3
    (of_ids,) = signatures["token_ids"](**ids).values()
    np.testing.assert_allclose(of_ids, expected, atol=TOLERANCE)


def test_ids_of_one_window_are_texts_of_one_window(make, traces_nothing):
    classifier = make(BertClassifier, "windows", num_classes=3)
    ids = {name: np.asarray(values) for name, values in classifier.preprocessor(SHORT).items()}
    expected = make(BertClassifier, num_classes=3).predict(SHORT, verbose=0)
    np.testing.assert_allclose(classifier.predict_on_batch(ids), expected, atol=TOLERANCE)


@pytest.mark.filterwarnings("error")
def test_nothing_is_cut_under_a_rule_and_without_one_the_warning_names_it(make, traces_nothing):
    for rule in ("head_tail", "windows"):
        make(BertClassifier, rule, num_classes=3).predict(TEXTS, verbose=0)
    with pytest.warns(UserWarning, match=re.escape('read all of them with `long_texts="windows"`.')):
        make(BertClassifier, num_classes=3).predict(TEXTS, verbose=0)


def test_a_report_counts_no_text_as_cut_under_windows(make, traces_nothing):
    pytest.importorskip("sklearn")
    report = make(BertClassifier, "windows", num_classes=2).report(TEXTS, [0, 1, 1, 0, 1, 0], num_errors=0)
    assert report.share_cut == 0


@pytest.mark.parametrize("task", [BertClassifier, BertCrossEncoder, BertSentenceEncoder, BertDualEncoder])
def test_errors(make, task, tokenizer, tmp_path):
    options = {"num_classes": 2} if task is BertClassifier else {}
    with pytest.raises(ValueError, match=f"`{task.__name__}`: `long_texts` must be one of"):
        make(task, "tail", **options)
    with pytest.raises(ValueError, match=f"`{task.__name__}`: `long_texts` must be None without a preprocessor"):
        make(task, "windows", preprocessor=None, **options)
    with pytest.raises(ValueError, match="`Windows`: `stride` must be at most 3"):
        make(task, Windows(stride=4), **options)
    left = BertPreprocessor(tokenizer, MAX_LENGTH, truncation_side="left")
    with pytest.raises(ValueError, match="`HeadTail`: `preprocessor.truncation_side` must be 'right'"):
        make(task, HeadTail(), preprocessor=left, **options)


def test_pairs_have_less_room_than_single_texts(make):
    """With 9 tokens a stride of 3 fits beside the special tokens of both, and with 8 of single texts only."""
    preprocessor = BertPreprocessor(make(BertSentenceEncoder).preprocessor.tokenizer, 8)
    options = {"num_classes": 2, "preprocessor": preprocessor}
    classifier = make(BertClassifier, Windows(stride=3), **options)
    with pytest.raises(ValueError, match="`Windows`: `stride` must be at most 2"):
        make(BertClassifier, Windows(stride=3), pairs=True, **options)
    with pytest.raises(ValueError, match="`Windows`: `stride` must be at most 2"):
        classifier.fit((QUERIES, TEXTS), [0, 1, 1, 0, 1, 0], verbose=0)
    assert classifier.pairs is None


@pytest.mark.filterwarnings("ignore:.*tokenizer follows Google")
def test_other_files_refuse_a_rule_that_they_cannot_hold(make, tmp_path):
    from keras_bert_layers import save_huggingface, save_kerashub

    pytest.importorskip("onnx")
    classifier = make(BertClassifier, "windows", num_classes=2)
    with pytest.raises(ValueError, match="`export`: `long_texts` must be None in an ONNX file"):
        classifier.export(tmp_path / "model.onnx", format="onnx")
    with pytest.raises(ValueError, match="`model.long_texts` must be None"):
        save_kerashub(classifier, tmp_path / "preset")
    with pytest.warns(UserWarning, match=re.escape("`save_huggingface`: long_texts=Windows(")):
        save_huggingface(classifier, tmp_path / "files")
    with pytest.raises(ValueError, match="have BERT's own weights and no others"):
        save_huggingface(make(BertClassifier, Windows(pooling="attention"), num_classes=2), tmp_path / "other")
