"""`attribute`: integrated gradients of classes, scores, spans and tags, and the exported signature of them.

Most tests run eagerly, as each task would trace a graph of its own; one compares with the graph.
"""

import gc

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

import keras_bert_layers as kbl
from keras_bert_layers.layers import EncoderParts, RotaryPositions
from keras_bert_layers.preprocessing import SentencePieceTokenizer, SpanPreprocessor
from keras_bert_layers.tasks.serving import attribution

TEXTS = ["a good film", "unhappy night , good night !", "film"]
NAMES = ["bad", "good", "so"]
# float32 sums over 32 points and 7 tokens, of logits of about 1.
SUM_TOLERANCE = 2e-6
# The midpoint rule with 400 points, whose error falls with their square.
MIDPOINT_TOLERANCE = 2e-5
# Graphs fuse operations that an eager call runs one by one.
GRAPH_TOLERANCE = 2e-6
# Captum sums the same points in another order.
CAPTUM_TOLERANCE = 2e-5


@pytest.fixture(autouse=True)
def runs_eagerly(request, eagerly):
    if "graph" in request.node.name:
        yield
        return
    with eagerly():
        yield


@pytest.fixture(scope="module")
def classifier(new_backbone, preprocessor):
    return kbl.BertClassifier(new_backbone(num_layers=2), class_names=NAMES, preprocessor=preprocessor)


@pytest.fixture(scope="module")
def answerer(new_backbone, tokenizer):
    return kbl.BertQuestionAnswerer(new_backbone(), SpanPreprocessor(tokenizer, max_length=9, stride=2))


@pytest.fixture(scope="module")
def tagger(new_backbone, preprocessor):
    return kbl.BertTokenClassifier(new_backbone(), ["O", "B-a", "I-a"], preprocessor=preprocessor)


def with_baseline(ids, fill):
    """The same ids with another token in place of those that are not special."""
    token_ids = np.array(ids["token_ids"])
    return tensors({**ids, "token_ids": np.where(token_ids > 3, fill, token_ids)})


def tensors(ids):
    return {name: ops.convert_to_tensor(values) for name, values in ids.items()}


def midpoint_scores(backbone, head, ids, target, fill):
    """Integrated gradients of one row by the midpoint rule, layer by layer, without the functional model."""
    embedding = backbone.get_layer("embedding")
    offset = embedding.position_offset
    positions = np.arange(offset, offset + ids["token_ids"].shape[1])[None] if offset else None
    start, end = (
        embedding(row["token_ids"], row["segment_ids"], positions) for row in (with_baseline(ids, fill), tensors(ids))
    )
    points = (np.arange(400, dtype="float32") + 0.5) / 400
    with tf.GradientTape() as tape:
        hidden = path = start + points[:, None, None] * (end - start)
        tape.watch(path)
        for index in range(backbone.config.num_layers):
            hidden = backbone.get_layer(f"encoder_block_{index}")(hidden)
        if backbone.parts.normalize_first:
            hidden = backbone.get_layer("final_layer_norm")(hidden)
        logits = head(backbone.get_layer("pooler")(hidden))[:, target]
    return np.sum(np.mean(tape.gradient(logits, path), axis=0) * (end - start)[0], axis=-1)


@pytest.mark.parametrize(
    ("baseline", "options"),
    [
        ("pad", {}),
        ("mask", {"position_offset": 2, "max_sequence_length": 15}),
        ("pad", {"embedding_dim": 5, "activation": "silu"}),
        ("mask", {"num_segments": 1, "parts": EncoderParts(normalize_first=True)}),
        ("pad", {"hidden_dim": 12, "parts": EncoderParts(positions=RotaryPositions())}),
    ],
    ids=["bert", "offset", "projected", "norm first", "rotary"],
)
def test_scores_are_those_of_the_midpoint_rule(baseline, options, new_backbone, preprocessor):
    tokenizer, sizes = preprocessor.tokenizer, {**new_backbone().config.to_dict(), "num_layers": 2, **options}
    parts = sizes.pop("parts", None)
    backbone = kbl.BertBackbone(kbl.BertConfig.from_dict(sizes), parts=parts)
    classifier = kbl.BertClassifier(backbone, class_names=NAMES, preprocessor=preprocessor)
    found = classifier.attribute(TEXTS[1], "so", baseline=baseline)
    ids = {name: np.array(values) for name, values in preprocessor([TEXTS[1]]).items()}
    fill = tokenizer.pad_id if baseline == "pad" else tokenizer.mask_id
    expected = midpoint_scores(backbone, classifier.get_layer("classification_head"), ids, 2, fill)
    np.testing.assert_allclose(found.scores, expected, atol=MIDPOINT_TOLERANCE)
    assert found.scores.any()


def test_scores_add_up_to_the_difference_of_the_logits(classifier, preprocessor):
    logits = classifier.predict(TEXTS, verbose=0)
    before = classifier(with_baseline(preprocessor(TEXTS), preprocessor.tokenizer.pad_id)).numpy()
    found = classifier.attribute(TEXTS)
    for row, one in enumerate(found):
        target = logits[row].argmax()
        assert one.target == NAMES[target]
        assert one.difference == pytest.approx(logits[row, target] - before[row, target], abs=SUM_TOLERANCE)
        assert one.scores.sum() == pytest.approx(one.difference, abs=SUM_TOLERANCE)
        assert one.word_scores.sum() == pytest.approx(one.difference, abs=SUM_TOLERANCE)
        assert one.error == pytest.approx(abs(one.scores.sum() - one.difference), abs=SUM_TOLERANCE)
        assert one.steps == 32


def test_tokens_words_and_places(classifier):
    found = classifier.attribute(TEXTS[1])
    assert found.tokens == ["[CLS]", "un", "##happy", "night", ",", "good", "night", "!", "[SEP]"]
    assert found.words == ["unhappy", "night", ",", "good", "night", "!"]
    assert found.word_scores[0] == pytest.approx(found.scores[1:3].sum())
    assert found.scores[0] == found.scores[-1] == 0
    parts = [TEXTS[1][start:end] for start, end in zip(found.starts, found.ends, strict=True) if start >= 0]
    assert parts == ["un", "happy", "night", ",", "good", "night", "!"]
    assert found.starts[0] == found.ends[-1] == -1


def test_a_text_has_the_same_scores_alone_and_among_others(classifier):
    for text, one in zip(TEXTS, classifier.attribute(TEXTS), strict=True):
        np.testing.assert_array_equal(one.scores, classifier.attribute(text).scores)


def test_pairs(classifier, preprocessor):
    found = classifier.attribute((TEXTS, TEXTS[::-1]), target=1)[0]
    assert found.tokens == ["[CLS]", "a", "good", "film", "[SEP]", "film", "[SEP]"]
    assert found.starts.tolist() == [-1, 0, 2, 7, -1, 0, -1]
    assert found.words == ["a", "good", "film", "film"]
    ids = preprocessor((TEXTS[:1], TEXTS[2:]))
    before = classifier(with_baseline(ids, preprocessor.tokenizer.pad_id))
    assert found.difference == pytest.approx(float((classifier(ids) - before)[0, 1]), abs=SUM_TOLERANCE)


def test_sentence_pieces_and_positions_of_roberta(new_backbone):
    """`<pad>`, the baseline, has a position of its own in RoBERTa; the path keeps the positions of the text."""
    vocabulary = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁good", "night", "▁n", "ight", "<mask>"]
    tokenizer = SentencePieceTokenizer(vocabulary, [0, 0, 0, 0, -2, -3, -4, -5, -6, 0])
    backbone = new_backbone(vocabulary_size=10, position_offset=2, num_segments=1, num_layers=2)
    task = kbl.BertClassifier(backbone, class_names=NAMES, preprocessor=kbl.BertPreprocessor(tokenizer, max_length=9))
    found = task.attribute(["good night", "night"], 1)[0]
    assert (found.words, found.tokens[1:4]) == (["good", "night"], ["good", "▁", "night"])
    assert found.word_scores[1] == pytest.approx(found.scores[2:4].sum())
    ids = {name: np.array(values) for name, values in task.preprocessor(["good night"]).items()}
    expected = midpoint_scores(backbone, task.get_layer("classification_head"), ids, 1, tokenizer.pad_id)
    np.testing.assert_allclose(found.scores, expected, atol=MIDPOINT_TOLERANCE)


def test_targets(classifier):
    by_name, by_index = classifier.attribute(TEXTS, "so"), classifier.attribute(TEXTS, [2, "bad", None])
    assert [one.target for one in by_name] == ["so"] * 3
    assert by_index[0].difference == by_name[0].difference
    highest = classifier.predict(TEXTS[2:], verbose=0)[0].argmax()
    by_labels = classifier.attribute(TEXTS, np.array([2, 0, 1]))
    assert [one.target for one in by_labels] == ["so", "bad", "good"]
    assert [one.target for one in by_index] == ["so", "bad", NAMES[highest]]


def test_several_labels_and_numbers(new_backbone, preprocessor):
    several = kbl.BertClassifier(
        new_backbone(), num_classes=3, problem_type="multi_label_classification", preprocessor=preprocessor
    )
    assert several.attribute(TEXTS[0], 1).target == "1"
    number = kbl.BertClassifier(new_backbone(), problem_type="regression", preprocessor=preprocessor)
    found = number.attribute(TEXTS[0])
    assert found.target == "score"
    assert abs(found.scores.sum() - found.difference) < SUM_TOLERANCE


def test_cross_encoder_with_a_prompt(new_backbone, preprocessor):
    encoder = kbl.BertCrossEncoder(
        new_backbone(), preprocessor, prompts={"query": "good film , "}, default_prompt="query"
    )
    found = encoder.attribute(("night", "a night"))
    assert found.tokens == ["[CLS]", "good", "film", ",", "night", "[SEP]", "a", "night", "[SEP]"]
    assert found.starts.tolist() == [-1, -1, -1, -1, 0, -1, 0, 2, -1]
    assert found.target == "score"
    ids = preprocessor((["good film , night"], ["a night"]))
    before = encoder(with_baseline(ids, preprocessor.tokenizer.pad_id))
    assert found.difference == pytest.approx(float((encoder(ids) - before)[0, 0]), abs=SUM_TOLERANCE)


def test_answer(answerer):
    question, context = "good night ?", "a good film , night bad film ! unhappy night film a good"
    best = answerer.best_answers(([question], [context]))
    found = answerer.attribute((question, context))
    assert found.target == best["answer"][0, 0]
    windows = {name: np.array(values) for name, values in answerer.preprocessor(([question], [context])).items()}
    differences = []
    for row in range(len(windows["rows"])):
        ids = {name: windows[name][row : row + 1] for name in ("token_ids", "segment_ids", "padding_mask")}
        first, last = (
            np.flatnonzero(windows[side][row] == best[name][0, 0])
            for side, name in (("starts", "start"), ("ends", "end"))
        )
        if first.size and last.size:
            logits = [answerer(chosen) for chosen in (with_baseline(ids, 0), tensors(ids))]
            before, after = (float(one["start_logits"][0, first[0]] + one["end_logits"][0, last[0]]) for one in logits)
            differences.append((after, after - before))
    assert found.difference == pytest.approx(max(differences)[1], abs=SUM_TOLERANCE)
    assert abs(found.scores.sum() - found.difference) < SUM_TOLERANCE
    assert found.tokens[:5] == ["[CLS]", "good", "night", "?", "[SEP]"]
    assert (found.starts[:5] == -1).all()


def test_answer_in_an_empty_context_is_the_first_token(answerer):
    assert answerer.attribute((["film"], [""]))[0].target == ""


@pytest.mark.parametrize("crf", [False, True])
def test_tag(crf, new_backbone, preprocessor):
    tagger = kbl.BertTokenClassifier(new_backbone(), ["O", "B-a", "I-a"], preprocessor=preprocessor, crf=crf)
    text = "unhappy night good film bad a night good"  # two windows of 9 tokens
    found = tagger.attribute([text, "film"], [(6, "I-a"), None])
    assert found[0].target == "I-a: night"
    windows = tagger.pipeline.aligner().align([text])
    window, position = divmod(int(windows.places[0, 6]), windows.inputs["token_ids"].shape[1])
    ids = {name: values.numpy()[window : window + 1] for name, values in windows.inputs.items()}
    change = tagger(tensors(ids)) - tagger(with_baseline(ids, preprocessor.tokenizer.pad_id))
    assert window == 1
    assert found[0].difference == pytest.approx(float(change[0, position, 2]), abs=SUM_TOLERANCE)
    assert text[found[0].starts[position] : found[0].ends[position]] == "night"
    logits = tagger.predict(["film"], verbose=0)[0, 0]
    assert found[1].target == ["B-a: film", "I-a: film"][logits[1:].argmax()]
    assert abs(found[1].scores.sum() - found[1].difference) < SUM_TOLERANCE


def test_points_are_doubled_and_a_large_error_is_reported(classifier):
    with pytest.warns(
        UserWarning, match=r"every row must reach tolerance=1e-12 with max_steps=70. Received: rows \[0, 1\]"
    ):
        found = classifier.attribute(TEXTS[:2], 0, tolerance=1e-12, max_steps=70)
    assert found[0].steps == 70
    assert classifier.attribute(TEXTS[0], max_steps=3, tolerance=9.0).steps == 3


def test_many_tokens_are_computed_in_parts(classifier, monkeypatch):
    whole = classifier.attribute(TEXTS[1])
    monkeypatch.setattr("keras_bert_layers.tasks.serving.attribution.TOKENS_AT_ONCE", 60)
    np.testing.assert_allclose(classifier.attribute(TEXTS[1]).scores, whole.scores, atol=SUM_TOLERANCE)


def test_a_progress_bar(classifier, capsys):
    classifier.attribute(["good", "bad"], [0, 1], verbose=1)
    assert "2/2" in capsys.readouterr().out
    classifier.attribute(["good", "bad"], [0, 1])
    assert capsys.readouterr().out == ""


def test_no_text_and_an_empty_text(classifier):
    assert classifier.attribute([]) == []
    found = classifier.attribute("")
    assert (found.tokens, found.words) == (["[CLS]", "[SEP]"], [])
    assert found.difference == pytest.approx(0, abs=SUM_TOLERANCE)


def test_graph(new_backbone, preprocessor, eagerly):
    task = kbl.BertClassifier(new_backbone(), class_names=NAMES, preprocessor=preprocessor)
    with eagerly():
        expected = task.attribute(TEXTS, "so")
    for one, other in zip(task.attribute(TEXTS, "so"), expected, strict=True):
        np.testing.assert_allclose(one.scores, other.scores, atol=GRAPH_TOLERANCE)
        assert one.difference == pytest.approx(other.difference, abs=GRAPH_TOLERANCE)


def test_graph_frees_its_custom_gradients(new_backbone, preprocessor):
    from tensorflow.python.framework.ops import gradient_registry

    before = set(gradient_registry._registry)
    task = kbl.BertClassifier(new_backbone(activation="silu"), num_classes=2, preprocessor=preprocessor)
    task.attribute(TEXTS[0], 1)
    assert set(gradient_registry._registry) > before
    del task
    gc.collect()
    assert set(gradient_registry._registry) == before


LONG = ["good film , unhappy night ! a bad film , a good night . good !", "a film"]


@pytest.fixture(scope="module")
def long_preprocessor(tokenizer):
    return kbl.BertPreprocessor(tokenizer, max_length=9)


def shown(one, texts):
    """The tokens of a text that have offsets, and what stands there."""
    text = iter(texts)
    current, pairs, last = next(text), [], -1
    for token, start, end in zip(one.tokens, one.starts, one.ends, strict=True):
        if 0 <= start <= last:
            current = next(text)
        if start >= 0:
            pairs.append((token.removeprefix("##"), current[start:end]))
            last = start
    return pairs


@pytest.mark.parametrize(
    ("problem", "pooling"),
    [("single_label_classification", "mean"), ("multi_label_classification", "max"), ("regression", "attention")],
)
def test_long_texts(new_backbone, long_preprocessor, problem, pooling):
    rule = kbl.preprocessing.Windows(stride=2, pooling=pooling)
    classes = {"num_classes": 1} if problem == "regression" else {"class_names": NAMES}
    options = {"preprocessor": long_preprocessor, "long_texts": rule, "problem_type": problem}
    task = kbl.BertClassifier(new_backbone(), **classes, **options)
    found = task.attribute(LONG, max_steps=64)
    assert len(found[0].words) == 16
    for one, text, logits in zip(found, LONG, task.predict(LONG, verbose=0), strict=True):
        assert one.error <= 1e-3 * max(1, abs(one.difference)) + SUM_TOLERANCE
        assert one.scores.sum() == pytest.approx(one.difference, abs=one.error + SUM_TOLERANCE)
        assert all(token == word for token, word in shown(one, [text]))
        windows = {
            name: values.numpy() for name, values in rule(long_preprocessor, [text]).items() if "rows" not in name
        }
        masked = {**windows, "token_ids": np.where(windows["token_ids"] > 3, 0, windows["token_ids"])}
        index = 0 if problem == "regression" else NAMES.index(one.target)
        rest = task({name: values[None] for name, values in masked.items()})[0, index]
        assert one.difference == pytest.approx(float(np.ravel(logits)[index] - rest), abs=SUM_TOLERANCE)


def test_windows_of_a_mean_count_alike(new_backbone, long_preprocessor):
    """The logit of the mean is the mean of the logits, so that each score is the mean over the windows."""
    rule = kbl.preprocessing.Windows(stride=2)
    long = kbl.BertClassifier(new_backbone(), 2, preprocessor=long_preprocessor, long_texts=rule)
    plain = kbl.BertClassifier(long.backbone, 2, preprocessor=long_preprocessor)
    plain.set_weights(long.get_weights())
    one = long.attribute(LONG[0], 1, max_steps=32)
    windows = {name: values for name, values in rule(long_preprocessor, LONG[:1]).items() if name != "window_rows"}
    baseline = tf.where(windows["token_ids"] > 3, 0, windows["token_ids"])
    targets = tf.ones([len(baseline), 1], tf.int32)
    scores, differences = attribution.integral(plain, windows, baseline, targets, tf.constant(attribution.path(32)))
    assert one.difference == pytest.approx(float(np.mean(differences)), abs=SUM_TOLERANCE)
    assert one.scores[1] == pytest.approx(float(scores[0, 1]) / len(baseline), abs=SUM_TOLERANCE)
    assert one.scores.sum() == pytest.approx(float(np.sum(scores)) / len(baseline), abs=10 * SUM_TOLERANCE)
    shared = float(scores[0, -2] + scores[1, 2]) / len(baseline)  # the last token of the first window
    assert one.scores[7] == pytest.approx(shared, abs=SUM_TOLERANCE)


@pytest.mark.parametrize("rule", ["windows", "head_tail"])
def test_long_pairs(new_backbone, long_preprocessor, rule):
    options = {"prompts": {"a": "a "}, "default_prompt": "a", "long_texts": rule}
    task = kbl.BertCrossEncoder(new_backbone(), long_preprocessor, **options)
    one = task.attribute(("film", LONG[0]))
    assert one.scores.sum() == pytest.approx(one.difference, abs=one.error + SUM_TOLERANCE)
    pairs = shown(one, ["film", LONG[0]])
    assert pairs[0] == ("film", "film")
    assert all(token == word for token, word in pairs)
    assert len(pairs) == (18 if rule == "windows" else 5)
    assert one.tokens[:4] == ["[CLS]", "a", "film", "[SEP]"]
    assert one.tokens.count("[SEP]") == 2


def test_refusals(classifier, answerer, tagger, new_backbone, monkeypatch):
    for target in ("odd", 3):
        with pytest.raises(
            ValueError, match=r"`BertClassifier`: `target` must be one of \['bad', 0, 'good', 1, 'so', 2\]"
        ):
            classifier.attribute(TEXTS, target)
    with pytest.raises(ValueError, match="`target` must hold one for each text. Received: 2 targets"):
        classifier.attribute(TEXTS, ["so", "bad"])
    with pytest.raises(ValueError, match=r"`baseline` must be one of \['pad', 'mask'\]. Received: baseline='zero'"):
        classifier.attribute(TEXTS, baseline="zero")
    with pytest.raises(ValueError, match="`tolerance` must be greater than 0"):
        classifier.attribute(TEXTS, tolerance=0)
    with pytest.raises(ValueError, match="`max_steps` must be at least 1"):
        classifier.attribute(TEXTS, max_steps=0)
    with pytest.raises(ValueError, match=r"`BertQuestionAnswerer`: `target` must be one of \[None\]"):
        answerer.attribute((["film"], ["a film"]), "start")
    rule = r"`target` must be the index of one of the 1 words of row 0, and one of \['O', 'B-a', 'I-a'\]"
    for target in ((1, "O"), (0, "B-b"), 0):
        with pytest.raises(ValueError, match=rule):
            tagger.attribute(["film"], target)
    with pytest.raises(ValueError, match="one of the 0 words of row 0"):
        tagger.attribute([""])
    with pytest.raises(ValueError, match="`preprocessor` must be given for raw text"):
        kbl.BertClassifier(new_backbone(), num_classes=2).attribute(TEXTS)
    with pytest.raises(ValueError, match="must name 'attributions' for a BertClassifier or a BertCrossEncoder only"):
        answerer.export("not written", signatures=["attributions"])
    options = {"preprocessor": classifier.preprocessor, "long_texts": "windows"}
    long = kbl.BertClassifier(new_backbone(), num_classes=2, **options)
    with pytest.raises(ValueError, match="`long_texts` must be None for the signature 'attributions'"):
        long.export("not written", signatures=["attributions"])
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(RuntimeError, match="`BertClassifier`: `attribute` needs the backend tensorflow"):
        classifier.attribute(TEXTS)


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [False, True])
def test_graph_in_a_saved_model(pairs, classifier, new_backbone, preprocessor, tmp_path):
    texts = (TEXTS, TEXTS[::-1]) if pairs else TEXTS
    task = classifier
    if pairs:
        task = kbl.BertCrossEncoder(new_backbone(), preprocessor, prompts={"a": "good "}, default_prompt="a")
    task.export(tmp_path / "model", signatures=["attributions"])
    serve = tf.saved_model.load(str(tmp_path / "model")).signatures["attributions"]
    found = serve(**dict(zip(("text", "text_pair"), map(tf.constant, texts if pairs else (texts,)), strict=False)))
    for row, one in enumerate(task.attribute(texts, max_steps=32)):
        length = len(one.tokens)
        assert [token.decode() for token in found["token"][row].numpy() if token] == one.tokens
        np.testing.assert_allclose(found["score"][row, :length], one.scores, atol=GRAPH_TOLERANCE)
        np.testing.assert_array_equal(found["start"][row, :length], one.starts)
        np.testing.assert_array_equal(found["end"][row, :length], one.ends)
        assert found["target"][row] == one.target
        assert float(found["difference"][row]) == pytest.approx(one.difference, abs=GRAPH_TOLERANCE)
        assert float(found["error"][row]) == pytest.approx(one.error, abs=GRAPH_TOLERANCE)
    assert not found["score"].numpy()[found["token"].numpy() == b""].any()
    assert (found["start"].numpy()[found["token"].numpy() == b""] == -1).all()


@pytest.mark.peers
@pytest.mark.parametrize("kind", ["class", "answer", "tag"])
def test_equals_captum(kind, torch, transformers, minilm, tmp_path):
    attr = pytest.importorskip("captum.attr")
    keras.utils.set_random_seed(3)
    backbone, preprocessor = kbl.load_backbone(minilm), kbl.load_preprocessor(minilm, max_length=32)
    text = "A warm, funny film that nobody in New York will forget."
    if kind == "class":
        task = kbl.BertClassifier(backbone, num_classes=3, preprocessor=preprocessor)
        task.layers[-1].dense.kernel.assign(np.random.default_rng(3).normal(0, 0.5, (384, 3)))
        found, ids, kinds = task.attribute(text), preprocessor([text]), transformers.BertForSequenceClassification
        logit = lambda output: output.logits[:, int(found.target)]  # noqa: E731
    elif kind == "tag":
        task = kbl.BertTokenClassifier(backbone, ["O", "B-a", "I-a"], preprocessor=preprocessor)
        found, ids, kinds = (
            task.attribute(text, (7, "B-a")),
            preprocessor([text]),
            transformers.BertForTokenClassification,
        )
        logit = lambda output: output.logits[:, 8, 1]  # noqa: E731
    else:
        task = kbl.BertQuestionAnswerer(backbone, preprocessor)
        found, kinds = task.attribute(("Where?", text)), transformers.BertForQuestionAnswering
        ids = task.preprocessor((["Where?"], [text]))
        start = text.encode().index(found.target.encode())
        first = int(np.flatnonzero(ids["starts"][0] == start)[0])
        last = int(np.flatnonzero(ids["ends"][0] == start + len(found.target.encode()))[0])
        logit = lambda output: output.start_logits[:, first] + output.end_logits[:, last]  # noqa: E731
    kbl.save_huggingface(task, tmp_path / "model")
    model = kinds.from_pretrained(tmp_path / "model").eval()
    rows = {name: torch.tensor(ids[name].numpy(), dtype=torch.long) for name in ("token_ids", "segment_ids")}
    explain = attr.LayerIntegratedGradients(
        lambda tokens: logit(model(tokens, token_type_ids=rows["segment_ids"].expand_as(tokens))), model.bert.embeddings
    )
    baseline = torch.where(rows["token_ids"] > 103, 0, rows["token_ids"])
    scores, delta = explain.attribute(
        rows["token_ids"],
        baselines=baseline,
        n_steps=found.steps,
        method="gausslegendre",
        return_convergence_delta=True,
    )
    np.testing.assert_allclose(found.scores, scores.sum(-1)[0].detach().numpy(), atol=CAPTUM_TOLERANCE)
    assert abs(float(delta)) == pytest.approx(found.error, abs=CAPTUM_TOLERANCE)
