"""The routes of OpenAI and text-embeddings-inference, with the public clients and without, against Keras."""

import base64

import numpy as np
import pytest
import requests

pytest.importorskip("bentoml", reason="the extra `serving` brings it, and with it the ASGI server")

pytestmark = [pytest.mark.serving, pytest.mark.usefixtures("traces_nothing")]  # the servers run graphs all the same

TEXTS = ["a good film", "bad , bad night !", "un ##happy", ""]
MAX_LENGTH = 16
# float32 in another order of sums.
ROUNDING = 1e-5


@pytest.fixture(scope="module")
def tasks(tokenizer):
    """One task of each kind, with random weights, by the name of its model."""
    import keras

    import keras_bert_layers as kbl

    keras.utils.set_random_seed(5)
    # Random weights of the usual size give vectors that hardly differ.
    config = kbl.BertConfig(
        vocabulary_size=tokenizer.vocabulary_size(),
        hidden_dim=15,
        num_layers=1,
        num_heads=3,
        intermediate_dim=21,
        initializer_range=0.4,
    )
    preprocessor = kbl.BertPreprocessor(tokenizer, max_length=MAX_LENGTH)
    options = {"preprocessor": preprocessor}
    return {
        "encoder": kbl.BertSentenceEncoder(
            kbl.BertBackbone(config), normalize=False, prompts={"film": "film : "}, **options
        ),
        "classifier": kbl.BertClassifier(kbl.BertBackbone(config), class_names=["bad", "fair", "good"], **options),
        "pairs": kbl.BertClassifier(kbl.BertBackbone(config), num_classes=2, pairs=True, **options),
        "dual": kbl.BertDualEncoder(kbl.BertBackbone(config), kbl.BertBackbone(config), **options),
        "reranker": kbl.BertCrossEncoder(kbl.BertBackbone(config), **options),
    }


@pytest.fixture(scope="module")
def urls(tasks, tmp_path_factory):
    """A server for each of them: name -> address."""
    import contextlib

    from application import make_application
    from application_server import serving
    from limits import Limits
    from served_model import ServedModel

    folder = tmp_path_factory.mktemp("clients")
    with contextlib.ExitStack() as stack:
        urls = {}
        for name, task in tasks.items():
            task.export(folder / name / "1")
            model = ServedModel(folder / name)
            assert model.load_newest()
            urls[name] = stack.enter_context(serving(make_application(model, name, Limits(rows=9, seconds=30.0))))
        yield urls


def ask(url, body, status=200):
    response = requests.post(url, json=body, timeout=30)
    assert response.status_code == status, response.text
    return response.json()


def lengths_one(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


@pytest.fixture
def vectors(tasks):
    return np.array(tasks["encoder"].predict(TEXTS))


@pytest.fixture
def openai(urls):
    """OpenAI's client; it requests base64 by default."""
    library = pytest.importorskip("openai", reason="the extra `serving` brings OpenAI's client")
    with library.OpenAI(base_url=f"{urls['encoder']}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture
def hub():
    return pytest.importorskip("huggingface_hub").InferenceClient


@pytest.mark.parametrize(
    "options", [{}, {"encoding_format": "float"}, {"encoding_format": "base64"}, {"dimensions": 15}]
)
def test_openai_client(openai, vectors, tasks, options):
    answer = openai.embeddings.create(model="encoder", input=TEXTS, **options)
    assert [entry.index for entry in answer.data] == [0, 1, 2, 3]
    found = [entry.embedding for entry in answer.data]
    if options.get("encoding_format") == "base64":
        found = [np.frombuffer(base64.b64decode(entry), "<f4") for entry in found]
    np.testing.assert_allclose(found, lengths_one(vectors), rtol=0, atol=ROUNDING)
    ids = tasks["encoder"].preprocessor(TEXTS)
    assert answer.usage.prompt_tokens == answer.usage.total_tokens == int(np.sum(ids["padding_mask"]))
    assert (answer.model, answer.object, answer.data[0].object) == ("encoder", "list", "embedding")
    assert answer._request_id


def test_openai_client_with_one_string(openai, vectors):
    answer = openai.embeddings.create(model="encoder", input=TEXTS[0])
    np.testing.assert_allclose(answer.data[0].embedding, lengths_one(vectors)[0], rtol=0, atol=ROUNDING)


def test_openai_client_sees_its_errors(openai, urls):
    import openai as library

    for options, kind, code, words in [
        ({"model": "another"}, library.NotFoundError, "model_not_found", "model must be 'encoder'"),
        ({"input": [[1, 2, 3]]}, library.BadRequestError, "invalid", "input must be a string or a list of strings"),
        ({"input": []}, library.BadRequestError, "invalid", "must be a list that is not empty"),
        ({"input": ["a"] * 10}, library.BadRequestError, "too_many_rows", "at most 9 (MAX_ROWS). Received: 10"),
        ({"dimensions": 7}, library.BadRequestError, "invalid", "dimensions must be 15"),
        ({"encoding_format": "hex"}, library.BadRequestError, "invalid", "encoding_format must be"),
    ]:
        with pytest.raises(kind) as caught:
            openai.embeddings.create(**{"model": "encoder", "input": "a", **options})
        assert caught.value.code == code
        assert words in caught.value.body["message"]
    error = ask(f"{urls['classifier']}/v1/embeddings", {"model": "classifier", "input": "a"}, 400)["error"]
    assert (error["code"], error["type"], error["param"]) == ("wrong_task", "invalid_request_error", None)


def test_hub_client_embeds(hub, urls, vectors):
    for address in (urls["encoder"], f"{urls['encoder']}/embed"):
        found = hub(model=address).feature_extraction(TEXTS)
        np.testing.assert_allclose(found, lengths_one(vectors), rtol=0, atol=ROUNDING)
    raw = hub(model=f"{urls['encoder']}/embed").feature_extraction(TEXTS[0], normalize=False, truncate=True)
    np.testing.assert_allclose(raw, vectors[:1], rtol=0, atol=ROUNDING)


def test_prompts(hub, urls, tasks):
    found = hub(model=f"{urls['encoder']}/embed").feature_extraction(TEXTS, prompt_name="film", normalize=False)
    np.testing.assert_allclose(found, tasks["encoder"].predict(TEXTS, prompt="film"), rtol=0, atol=ROUNDING)
    answer = ask(f"{urls['encoder']}/embed", {"inputs": "a", "prompt_name": "token_ids"}, 422)
    assert "prompt_name must be a prompt of the model" in answer["error"]


def test_dual_encoder(hub, urls, tasks):
    queries, documents = tasks["dual"].encode_queries(TEXTS), tasks["dual"].encode_documents(TEXTS)
    assert np.abs(queries - documents).max() > 0.01
    embed = hub(model=f"{urls['dual']}/embed").feature_extraction
    np.testing.assert_allclose(embed(TEXTS), queries, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(embed(TEXTS, prompt_name="query"), queries, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(embed(TEXTS, prompt_name="document"), documents, rtol=0, atol=ROUNDING)


def test_hub_client_compares_sentences(hub, urls, vectors):
    expected = lengths_one(vectors)[1:] @ lengths_one(vectors)[0]
    for address in (urls["encoder"], f"{urls['encoder']}/similarity"):
        found = hub(model=address).sentence_similarity(TEXTS[0], TEXTS[1:])
        np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING)


def test_hub_client_classifies(hub, urls, tasks):
    """The client takes the first of what it gets; of text-embeddings-inference's answer that is the best label."""
    expected = tasks["classifier"].answer(TEXTS)
    for address in (urls["classifier"], f"{urls['classifier']}/predict"):
        best = hub(model=address).text_classification(TEXTS[0])
        assert best.label == expected["label"][0]
        assert best.score == pytest.approx(expected["probabilities"][0].max(), abs=ROUNDING)


def test_predict(urls, tasks):
    address, expected = f"{urls['classifier']}/predict", tasks["classifier"].answer(TEXTS)["probabilities"]
    found = ask(address, {"inputs": [[text] for text in TEXTS]})
    labels = ["bad", "fair", "good"]
    by_label = [[{entry["label"]: entry["score"] for entry in row}[label] for label in labels] for row in found]
    np.testing.assert_allclose(by_label, expected, rtol=0, atol=ROUNDING)
    assert all(
        [entry["score"] for entry in row] == sorted((entry["score"] for entry in row), reverse=True) for row in found
    )
    assert ask(address, {"inputs": TEXTS[0]}) == ask(address, {"inputs": [[TEXTS[0]]]})[0]
    raw = ask(address, {"inputs": TEXTS[0], "raw_scores": True})
    logits = tasks["classifier"].predict(TEXTS[:1])[0]
    np.testing.assert_allclose([entry["score"] for entry in raw], np.sort(logits)[::-1], rtol=0, atol=ROUNDING)


def test_predict_of_pairs(urls, tasks):
    pairs = [["a film", "good"], ["bad", "night !"]]
    expected = tasks["pairs"].answer(tuple(map(list, zip(*pairs, strict=True))))["probabilities"]
    found = ask(f"{urls['pairs']}/predict", {"inputs": pairs})
    np.testing.assert_allclose([row[0]["score"] for row in found], expected.max(axis=1), rtol=0, atol=ROUNDING)
    one = ask(f"{urls['pairs']}/predict", {"inputs": pairs[0]})  # a list of two strings is one pair, not a batch
    assert one[0]["score"] == pytest.approx(found[0][0]["score"], abs=ROUNDING)
    refused = ask(f"{urls['pairs']}/predict", {"inputs": [["a"]]}, 422)
    assert "takes 2 texts (text, text_pair) for each of the inputs. Received: 1 in number 0" in refused["error"]


@pytest.mark.parametrize("raw", [False, True])
def test_rerank(urls, tasks, raw):
    query, texts = "good film", ["bad night", "a film !", "good", "un ##happy"]
    logits = tasks["reranker"].predict(([query] * 4, texts))[:, 0]
    expected = logits if raw else 1 / (1 + np.exp(-logits))
    body = {"query": query, "texts": texts, "raw_scores": raw, "return_text": True}
    for address in (urls["reranker"], f"{urls['reranker']}/rerank"):
        found = ask(address, body)
        assert [entry["index"] for entry in found] == np.argsort(-expected).tolist()
        assert [entry["text"] for entry in found] == [texts[entry["index"]] for entry in found]
        np.testing.assert_allclose([entry["score"] for entry in found], np.sort(expected)[::-1], rtol=0, atol=ROUNDING)
    assert "text" not in ask(address, body | {"return_text": False})[0]


@pytest.mark.parametrize(
    ("model", "route", "body", "status", "kind", "words"),
    [
        ("encoder", "rerank", {"query": "a", "texts": ["b"]}, 424, "Backend", "not a re-ranker"),
        ("classifier", "rerank", {"query": "a", "texts": ["b"]}, 424, "Backend", "not a re-ranker"),
        ("encoder", "predict", {"inputs": "a"}, 424, "Backend", "not a classifier"),
        ("classifier", "embed", {"inputs": "a"}, 424, "Backend", "must be a sentence encoder"),
        ("reranker", "similarity", {"inputs": {"source_sentence": "a", "sentences": ["b"]}}, 424, "Backend", "encoder"),
        ("reranker", "rerank", {"query": "a", "texts": []}, 400, "Empty", "`texts` cannot be empty"),
        ("reranker", "rerank", {"query": ["a"], "texts": ["b"]}, 422, "Validation", "query must be a string"),
        ("reranker", "rerank", {"query": "a", "texts": ["b", 7]}, 422, "Validation", "row 1 of the input 'text_pair'"),
        ("encoder", "embed", {"inputs": []}, 400, "Empty", "`inputs` cannot be empty"),
        ("encoder", "embed", {}, 422, "Validation", "inputs must be a string or a list of strings"),
        ("encoder", "embed", {"inputs": [7]}, 422, "Validation", "ids are not taken here"),
        ("encoder", "embed", {"inputs": "a", "normalize": "yes"}, 422, "Validation", "normalize must be true or false"),
        ("encoder", "embed", {"inputs": "a", "dimensions": 3}, 422, "Validation", "dimensions must be 15"),
        ("encoder", "embed", {"inputs": "a", "truncation_direction": "Left"}, 422, "Validation", "must be 'right'"),
        ("encoder", "embed", {"inputs": ["a"] * 10}, 422, "Validation", "at most 9 (MAX_ROWS). Received: 10"),
        ("encoder", "similarity", {"inputs": {"sentences": ["b"]}}, 422, "Validation", "a source_sentence"),
        ("classifier", "predict", {"inputs": {}}, 422, "Validation", "inputs must be a string, a pair"),
        ("classifier", "predict", {"inputs": ["a", "b"]}, 422, "Validation", "takes 1 texts"),
    ],
)  # fmt: skip
def test_what_a_model_cannot_do_is_reported(urls, model, route, body, status, kind, words):
    answer = ask(f"{urls[model]}/{route}", body, status)
    assert set(answer) == {"error", "error_type"}
    assert answer["error_type"] == kind
    assert words in answer["error"]


def test_texts_that_would_be_cut(urls):
    """Without `truncate` they are cut, as by text-embeddings-inference; with false they are refused."""
    address, long = f"{urls['encoder']}/embed", "a " * 40
    assert len(ask(address, {"inputs": long})) == 1
    assert len(ask(address, {"inputs": ["a " * (MAX_LENGTH - 3)], "truncate": False})) == 1
    refused = ask(address, {"inputs": ["a", long], "truncate": False}, 422)
    assert refused["error"].endswith("must have less than 16 tokens. Received: 16 or more in number 1")
