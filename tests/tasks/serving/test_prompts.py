import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers import BertCrossEncoder, BertDualEncoder, BertPreprocessor, BertSentenceEncoder, BertTokenizer
from keras_bert_layers.tasks.serving.prompts import Prompts

TEXTS = ["good film", "night", ""]
OTHERS = ["bad", "a film", "good"]
PROMPTS = {"query": "good : ", "document": "bad ", "nothing": ""}
# Float32 sums of rows of other widths.
TOLERANCE = 1e-6


@pytest.fixture(scope="module")
def make(new_backbone, vocabulary):
    """Makes a task that runs eagerly: a trace takes longer than these few texts."""
    preprocessor = BertPreprocessor(BertTokenizer(vocabulary), max_length=9)

    def make(kind, **options):
        task = kind(new_backbone(), preprocessor=preprocessor, **options)
        task.compile(run_eagerly=True)
        return task

    return make


@pytest.fixture(scope="module")
def encoder(make):
    return make(BertSentenceEncoder, prompts=PROMPTS, default_prompt="query")


def close(found, expected):
    np.testing.assert_allclose(found, expected, atol=TOLERANCE)


def put_before(prompt, texts):
    return [prompt + text for text in texts]


def test_texts_of_prompts():
    prompts = Prompts("Owner", PROMPTS, "document")
    assert prompts.text() == "bad "
    assert [prompts.text(name) for name in PROMPTS] == list(PROMPTS.values())
    assert [prompts.text(text) for text in ("", "bad :", "für")] == ["", "bad :", "für"]
    assert Prompts("Owner", None).text() == Prompts("Owner", PROMPTS).text() == ""


@pytest.mark.parametrize("prompt", ["qery", "s2p-query", "a.b_c"])
def test_a_word_that_is_not_a_name(prompt):
    with pytest.raises(
        ValueError, match=rf"`prompt` must be a text, or the name of a prompt.*Received: prompt='{prompt}'"
    ):
        Prompts("Owner", PROMPTS).text(prompt)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (({"a": 3},), TypeError, "`prompts` must be strings by name"),
        ((PROMPTS, "other"), ValueError, "`default_prompt` must be None or the name of a prompt"),
        ((None, "query"), ValueError, "`default_prompt` must be None or the name of a prompt"),
        (({"tokenize": "x"},), ValueError, "`prompts` must have names other than"),
    ],
)
def test_wrong_prompts(arguments, error, message):
    with pytest.raises(error, match=f"`Owner`: {message}"):
        Prompts("Owner", *arguments)


def test_sentence_encoder(make, encoder):
    plain = make(BertSentenceEncoder)
    expected = {name: plain.predict(put_before(text, TEXTS), verbose=0) for name, text in PROMPTS.items()}
    close(encoder.predict(TEXTS, verbose=0), expected["query"])
    close(encoder.predict(TEXTS, verbose=0, prompt="document"), expected["document"])
    close(encoder.predict(TEXTS, verbose=0, prompt="bad "), expected["document"])
    close(encoder.predict(TEXTS, verbose=0, prompt=""), expected["nothing"])
    close(encoder.encode_queries(TEXTS, verbose=0), expected["query"])
    close(encoder.encode_documents(TEXTS, verbose=0), expected["document"])
    cosines = np.sum(expected["document"] * plain.predict(put_before("bad ", OTHERS), verbose=0), axis=-1)
    close(encoder.predict((TEXTS, OTHERS), verbose=0, prompt="document"), cosines)


def test_a_default_prompt_is_not_that_of_queries(make):
    task = make(BertSentenceEncoder, prompts={"other": "good : "}, default_prompt="other")
    close(task.encode_queries(TEXTS, verbose=0), task.predict(TEXTS, verbose=0, prompt=""))
    assert np.abs(task.encode_documents(TEXTS, verbose=0) - task.predict(TEXTS, verbose=0)).max() > 0.01


def test_training_reads_the_prompt(encoder):
    ids, _ = encoder.pipeline.encode(tf.constant(TEXTS), tf.zeros((3, 15)))
    expected = encoder.preprocessor(put_before("good : ", TEXTS))
    np.testing.assert_array_equal(ids["token_ids"], expected["token_ids"])
    ids, _ = encoder.pipeline.encode((tf.constant(TEXTS), tf.constant(OTHERS)), tf.zeros(3))
    both = [text for pair in zip(TEXTS, OTHERS, strict=True) for text in pair]
    np.testing.assert_array_equal(ids["token_ids"], encoder.preprocessor(put_before("good : ", both))["token_ids"])


@pytest.mark.usefixtures("traces_nothing")
def test_a_signature_for_each_prompt(encoder):
    signatures = {signature.name: signature.function for signature in encoder.signatures()}
    assert list(signatures) == ["serving_default", "token_ids", "tokenize", *PROMPTS]
    for name in ("serving_default", *PROMPTS):
        prompt = None if name == "serving_default" else name
        found = signatures[name](tf.constant(TEXTS))["embedding"]
        close(found, encoder.predict(TEXTS, verbose=0, prompt=prompt))
    assert len(BertSentenceEncoder(encoder.backbone, prompts=PROMPTS).signatures()) == 1, "ids have no prompts"


def test_saved(encoder, tmp_path):
    encoder.save(tmp_path / "x.keras")
    again = keras.models.load_model(tmp_path / "x.keras")
    assert (again.prompts, again.default_prompt) == (PROMPTS, "query")
    assert again.pipeline.prompt == "good : "


def test_ids_have_no_prompt(encoder):
    with pytest.raises(ValueError, match=r"`prompt` must be None for ids\. Received: prompt='query'"):
        encoder.predict(encoder.preprocessor(TEXTS), prompt="query")


@pytest.mark.usefixtures("traces_nothing")
def test_cross_encoder(make):
    """The prompt is put before the query alone."""
    task = make(BertCrossEncoder, prompts=PROMPTS, default_prompt="query")
    plain = make(BertCrossEncoder)
    plain.set_weights(task.get_weights())
    for prompt, text in ((None, "good : "), ("document", "bad "), ("", "")):
        expected = plain.predict((put_before(text, TEXTS), OTHERS), verbose=0)
        close(task.predict((TEXTS, OTHERS), verbose=0, prompt=prompt), expected)
    document = {signature.name: signature.function for signature in task.signatures()}["document"]
    scores = document(tf.constant(TEXTS), tf.constant(OTHERS))["score"]
    close(scores, plain.serve(tf.constant(put_before("bad ", TEXTS)), tf.constant(OTHERS))["score"])
    ranks = task.rank("night", OTHERS, prompt="document"), plain.rank("bad night", OTHERS)
    close(*([row["score"] for row in found] for found in ranks))


@pytest.mark.usefixtures("traces_nothing")
def test_dual_encoder(make):
    prompts = {"query": "good : ", "document": "bad "}
    task, plain = make(BertDualEncoder, prompts=prompts), make(BertDualEncoder)
    queries = plain.encode_queries(put_before("good : ", TEXTS), verbose=0)
    documents = plain.encode_documents(put_before("bad ", OTHERS), verbose=0)
    close(task.encode_queries(TEXTS, verbose=0), queries)
    close(task.encode_documents(OTHERS, verbose=0), documents)
    close(task.predict((TEXTS, OTHERS), verbose=0), np.sum(queries * documents, axis=-1))
    for name, texts, vectors in (("query", TEXTS, queries), ("document", OTHERS, documents)):
        function = {signature.name: signature.function for signature in task.signatures()}[name]
        close(function(tf.constant(texts))["embedding"], vectors)
    assert task.get_config()["prompts"] == prompts
    with pytest.raises(ValueError, match=r"`prompts` must be one of \['query', 'document'\]. Received: .*'other'"):
        make(BertDualEncoder, prompts={"other": "x"})
