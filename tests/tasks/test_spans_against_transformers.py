"""Logits of windows, and the answers that they give, beside transformers + torch with the same weights."""

import gzip
import json

import numpy as np
import pytest

from keras_bert_layers import BertQuestionAnswerer, load_backbone, load_tokenizer
from keras_bert_layers.preprocessing import SpanPreprocessor

pytestmark = pytest.mark.peers

MAX_LENGTH, STRIDE, MAX_ANSWER_LENGTH = 128, 48, 30
NUM_QUESTIONS = 24
# Six float32 blocks in two libraries; logits are up to about 3.
LOGITS_TOLERANCE = 2e-5
SIDES = ("start_logits", "end_logits")


@pytest.fixture(scope="module")
def columns(shared_data):
    """Questions on paragraphs, not all of them ASCII."""
    articles = json.loads(gzip.decompress((shared_data / "squad" / "xquad-en.json.gz").read_bytes()))["data"]
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]][::10][:NUM_QUESTIONS]
    contexts = [paragraph["context"] for paragraph in paragraphs]
    assert not all(context.isascii() for context in contexts)
    return [paragraph["qas"][0]["question"] for paragraph in paragraphs], contexts


@pytest.fixture(scope="module")
def head():
    return np.random.default_rng(3).normal(0, 0.2, (384, 2)).astype("float32")


@pytest.fixture(scope="module")
def answerer(minilm, head):
    preprocessor = SpanPreprocessor(load_tokenizer(minilm), MAX_LENGTH, stride=STRIDE)
    answerer = BertQuestionAnswerer(load_backbone(minilm), preprocessor, max_answer_length=MAX_ANSWER_LENGTH)
    answerer.get_layer("span_head").dense.kernel.assign(head)
    return answerer


@pytest.fixture(scope="module")
def theirs(minilm, head, columns):
    """Windows of their tokenizer, and logits of their model."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    model = transformers.BertForQuestionAnswering.from_pretrained(minilm).eval()
    with torch.no_grad():
        model.qa_outputs.weight.copy_(torch.from_numpy(head.T))
        model.qa_outputs.bias.zero_()
    batch = transformers.AutoTokenizer.from_pretrained(minilm)(
        *columns,
        truncation="only_second",
        max_length=MAX_LENGTH,
        stride=STRIDE,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        padding=True,
        return_tensors="pt",
    )
    inputs = {name: batch[name] for name in ("input_ids", "token_type_ids", "attention_mask")}
    with torch.inference_mode():
        outputs = model(**inputs)
    return batch, [outputs[side].numpy() for side in SIDES]


def test_logits(answerer, columns, theirs):
    batch, expected = theirs
    assert len(batch["input_ids"]) > NUM_QUESTIONS
    may_be = np.array([[part == 1 for part in batch.sequence_ids(row)] for row in range(len(batch["input_ids"]))])
    may_be[:, 0] = True
    logits = answerer.predict(columns)
    for side, values in zip(SIDES, expected, strict=True):
        np.testing.assert_allclose(logits[side][may_be], values[may_be], atol=LOGITS_TOLERANCE)
        assert (logits[side][~may_be] < -1e8).all()


def test_answers(answerer, columns, theirs):
    """The best pair of tokens over all windows, one pair at a time."""
    batch, (start_logits, end_logits) = theirs
    best = {}
    for window, row in enumerate(batch["overflow_to_sample_mapping"].tolist()):
        tokens = [token for token, part in enumerate(batch.sequence_ids(window)) if part == 1]
        offsets = batch["offset_mapping"][window].tolist()
        for first in tokens:
            for last in range(first, min(first + MAX_ANSWER_LENGTH, tokens[-1] + 1)):
                score = float(start_logits[window, first] + end_logits[window, last])
                best[row] = max(best.get(row, (-np.inf,)), (score, offsets[first][0], offsets[last][1]))
    expected = [columns[1][row][start:end] for row, (_, start, end) in sorted(best.items())]
    assert answerer.answer(columns)["answer"].tolist() == expected
