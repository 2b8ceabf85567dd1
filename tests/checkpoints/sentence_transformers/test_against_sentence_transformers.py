"""Directories of sentence-transformers read here, and ours read there, with equal outputs."""

import contextlib
import dataclasses
import json
import warnings

import numpy as np
import pytest

from keras_bert_layers import (
    BertBackbone,
    BertCrossEncoder,
    BertDualEncoder,
    BertMultiVectorEncoder,
    BertSentenceEncoder,
    BertSparseEncoder,
    load_task,
    save_huggingface,
)

pytestmark = pytest.mark.peers

# What two float32 implementations of these small models may differ by.
TOLERANCE = 1e-5
PROMPTS = {"query": "good : ", "document": "film ", "other": "a night."}
# Keyword arguments of our sentence encoder, and what the chain of modules becomes.
ENCODERS = {
    "cls": {"pooling": "cls"},
    "mean_sqrt_len_tokens": {"pooling": "mean_sqrt_len_tokens", "normalize": False},
    "weightedmean": {"pooling": "weightedmean"},
    "lasttoken": {"pooling": "lasttoken"},
    "flags": {"pooling": ("cls", "max", "mean", "lasttoken")},
    "order": {"pooling": ("weightedmean", "max", "cls")},
    "dense": {"projection_dim": 7, "projection_activation": "gelu_erf"},
    "several_dense": {
        "pooling": ("cls", "mean"),
        "projection_dim": (9, 7),
        "projection_activation": ("linear", "silu"),
    },
    "cut": {"truncate_dim": 5},
    "cut_dense": {"projection_dim": 7, "normalize": False, "truncate_dim": 3},
    "prompts": {"prompts": PROMPTS},
    "default_prompt": {"prompts": PROMPTS, "default_prompt": "other", "truncate_dim": 4},
    "one_prompt": {"prompts": {"query": "good : "}, "default_prompt": "query"},
}
ACTIVATIONS = ("sigmoid", "linear", "tanh", "relu", "relu6", "silu", "mish", "gelu_erf")


@contextlib.contextmanager
def foreign_warnings():
    """Warnings of another project, which cannot be fixed here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def peer():
    with foreign_warnings():
        return pytest.importorskip("sentence_transformers")


def assert_equal_vectors(task, model, texts):
    """Of every way that texts may be read."""
    close = {"rtol": 0, "atol": TOLERANCE}
    np.testing.assert_allclose(task.predict(texts, verbose=0), model.encode(texts), **close)
    np.testing.assert_allclose(task.encode_queries(texts, verbose=0), model.encode_query(texts), **close)
    np.testing.assert_allclose(task.encode_documents(texts, verbose=0), model.encode_document(texts), **close)
    for name in task.prompts or {}:
        theirs = model.encode(texts, prompt_name=name)
        np.testing.assert_allclose(task.predict(texts, verbose=0, prompt=name), theirs, **close)
    theirs = model.encode(texts, prompt="bad ")
    np.testing.assert_allclose(task.predict(texts, verbose=0, prompt="bad "), theirs, **close)


@pytest.mark.parametrize("name", ENCODERS)
def test_sentence_encoders_both_ways(peer, our_models, tmp_path, name):
    backbone, preprocessor = BertBackbone(our_models.CONFIG), our_models.preprocessor()
    task = BertSentenceEncoder(backbone, preprocessor=preprocessor, **ENCODERS[name])
    task = our_models.randomised(task)
    save_huggingface(task, tmp_path / "ours")
    with foreign_warnings():
        model = peer.SentenceTransformer(str(tmp_path / "ours"), device="cpu")
        assert_equal_vectors(task, model, our_models.TEXTS)
        model.save_pretrained(str(tmp_path / "theirs"))
    again = load_task(tmp_path / "theirs")
    assert again.truncate_dim == task.truncate_dim
    assert again.default_prompt == task.default_prompt
    assert_equal_vectors(again, model, our_models.TEXTS)


SPARSE = {
    "plain": {},
    "sum": {"pooling": "sum", "activation": "log1p_relu"},
    "few": {"max_active_dims": 3, "tie_weights": False},
    "prompts": {"prompts": PROMPTS, "default_prompt": "other"},
    "looked up": {"query_weights": "frozen", "prompts": PROMPTS},
}


def as_matrix(vectors):
    found = np.zeros(vectors.shape, np.float32)
    for row, (ids, weights) in zip(found, vectors, strict=True):
        row[ids] = weights
    return found


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_encoders_both_ways(peer, our_models, tmp_path, name):
    preprocessor, config = our_models.preprocessor(), our_models.CONFIG
    if name == "looked up":  # sentence-transformers has a weight for each token of the tokenizer
        config = dataclasses.replace(config, vocabulary_size=preprocessor.tokenizer.vocabulary_size())
    task = our_models.randomised(BertSparseEncoder(BertBackbone(config), preprocessor=preprocessor, **SPARSE[name]))
    if name == "looked up":
        task.get_layer("masked_lm_head").queries.set_weights([np.linspace(0, 2, config.vocabulary_size)])
    save_huggingface(task, tmp_path / "ours")
    texts = [*our_models.TEXTS, "", "a [MASK] film"]
    if name == "looked up":  # there, a query may have two more tokens, as it has no [CLS] and [SEP]
        texts[2] = texts[2][:20]
    with foreign_warnings():
        model = peer.SparseEncoder(str(tmp_path / "ours"), device="cpu")
        theirs = [
            encode(texts).to_dense().numpy() for encode in (model.encode, model.encode_query, model.encode_document)
        ]
        scores = model.similarity(model.encode_query(texts), model.encode_document(texts)).numpy()
        words = model.decode(model.encode(texts[:1]))[0]
        model.save_pretrained(str(tmp_path / "theirs"))
    again = load_task(tmp_path / "theirs")
    assert (again.max_active_dims, again.default_prompt) == (task.max_active_dims, task.default_prompt)
    assert again.query_weights == task.query_weights
    for ours in (task, again):
        encodings = (ours.predict, ours.encode_queries, ours.encode_documents)
        for encode, expected in zip(encodings, theirs, strict=True):
            np.testing.assert_allclose(as_matrix(encode(texts, verbose=0)), expected, rtol=0, atol=TOLERANCE)
        np.testing.assert_allclose(ours.similarity(texts, texts), scores, rtol=1e-5, atol=TOLERANCE)
        own = ours.predict(texts[:1], verbose=0).words(ours.preprocessor.tokenizer)[0]
        assert [word for word, _ in own] == [word or "" for word, _ in words]


MULTI_VECTORS = {
    "plain": {},
    "unattended": {
        "query_length": 9,
        "query_expansion": "unattended",
        "prompts": {"query": "[Q] ", "document": "a "},
    },
    "attended": {"query_length": 14, "query_expansion": "attended", "skiplist": ["film", "not a token", ","]},
    "lengths": {"query_length": 5, "document_length": 7, "prompts": {"document": "film "}},
}


def assert_equal_token_vectors(task, model, texts):
    """Of queries and of documents, with the scores of all pairs."""
    found = [task.encode_queries(texts, verbose=0), task.encode_documents(texts, verbose=0)]
    theirs = [encode(texts, convert_to_numpy=True) for encode in (model.encode_query, model.encode_document)]
    for own, other in zip([*found[0], *found[1]], [*theirs[0], *theirs[1]], strict=True):
        np.testing.assert_allclose(own, other, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(task.similarity(*found), model.similarity(*theirs).numpy(), rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", MULTI_VECTORS)
def test_multi_vector_encoders_both_ways(peer, our_models, tmp_path, name):
    backbone, preprocessor = BertBackbone(our_models.CONFIG), our_models.preprocessor()
    task = BertMultiVectorEncoder(backbone, 7, preprocessor=preprocessor, **MULTI_VECTORS[name])
    save_huggingface(our_models.randomised(task), tmp_path / "ours")
    texts = [*our_models.TEXTS, "", "a [MASK] film"]
    with foreign_warnings():
        model = peer.MultiVectorEncoder(str(tmp_path / "ours"), device="cpu")
        model.save_pretrained(str(tmp_path / "theirs"))
        assert_equal_token_vectors(task, model, texts)
        again = load_task(tmp_path / "theirs")
        assert_equal_token_vectors(again, model, texts)
    assert (again.query_expansion, again.skiplist) == (task.query_expansion, task.skiplist)
    assert again.prompts == task.prompts


PYLATE = {
    "by default": {"query_prefix": "[Q] ", "document_prefix": "[D] ", "query_length": 13},
    "attended": {"query_length": 10, "attend_to_expansion_tokens": True, "skiplist_words": ["film"]},
    "not expanded": {"query_length": 6, "document_length": 8, "do_query_expansion": False, "prompts": {"query": "a "}},
    "prefix and prompt": {"query_prefix": "[Q] ", "prompts": {"query": "[Q] good "}, "query_length": 12},
}


@pytest.mark.parametrize("name", PYLATE)
@pytest.mark.parametrize("adds_tokens", [True, False])
def test_directories_of_pylate(peer, our_models, pylate, tmp_path, name, adds_tokens):
    directory = pylate(our_models, tmp_path / "x", **PYLATE[name])
    with foreign_warnings():
        if adds_tokens:  # the token has an id of its own, and is not found in lower-cased text
            transformers = pytest.importorskip("transformers")
            tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
            tokenizer.add_tokens(["[Q] ", "[D] "])
            tokenizer.save_pretrained(directory)
        model = peer.MultiVectorEncoder(str(directory), device="cpu")
        assert_equal_token_vectors(load_task(directory), model, [*our_models.TEXTS, "", "[Q] a film"])


@pytest.mark.usefixtures("traces_nothing")
def test_the_loss_of_a_sparse_encoder(peer, our_models, tmp_path):
    columns = [our_models.TEXTS, ["good night", "film", "happy"], ["a", "bad night", "films"]]
    options = {"preprocessor": our_models.preprocessor(), "warmup_steps": 0}
    penalties = {"query_penalty": 0.25, "document_penalty": 0.5}
    task = BertSparseEncoder(BertBackbone(our_models.CONFIG), **penalties, **options)
    save_huggingface(our_models.randomised(task), tmp_path / "x")
    with foreign_warnings():
        from sentence_transformers.sparse_encoder import losses

        model = peer.SparseEncoder(str(tmp_path / "x"), device="cpu").eval()
        ranking = losses.SparseMultipleNegativesRankingLoss(model)
        factors = {"query_regularizer_weight": 0.25, "document_regularizer_weight": 0.5}
        loss = losses.SpladeLoss(model, ranking, **factors)
        parts = {name: float(part) for name, part in loss([model.preprocess(column) for column in columns]).items()}
    found = task.test_on_batch(tuple(columns), return_dict=True)
    assert found["loss"] == pytest.approx(sum(parts.values()), rel=1e-5)
    assert found["penalty"] == pytest.approx(sum(parts.values()) - parts["base_loss"], rel=1e-5)


@pytest.mark.parametrize("options", [{"activation": name} for name in ACTIVATIONS] + [{"prompts": PROMPTS}], ids=str)
def test_cross_encoders_both_ways(peer, our_models, tmp_path, options):
    if "prompts" in options:
        options = {**options, "default_prompt": "other", "activation": "tanh"}
    task = BertCrossEncoder(BertBackbone(our_models.CONFIG), our_models.preprocessor(), **options)
    save_huggingface(our_models.randomised(task), tmp_path / "ours")
    pairs = our_models.TEXTS, our_models.TEXTS[::-1]
    with foreign_warnings():
        model = peer.CrossEncoder(str(tmp_path / "ours"), device="cpu")
        theirs = model.predict(list(zip(*pairs, strict=True)))
        ranks = model.rank("good film", our_models.TEXTS)
        model.save_pretrained(str(tmp_path / "theirs"))
    again = load_task(tmp_path / "theirs")
    assert (again.activation, again.prompts) == (task.activation, task.prompts)
    for ours in (task, again):
        np.testing.assert_allclose(ours.answer(pairs)["score"], theirs, rtol=0, atol=TOLERANCE)
        found = ours.rank("good film", our_models.TEXTS)
        np.testing.assert_allclose([row["score"] for row in found], [row["score"] for row in ranks], atol=TOLERANCE)


def test_dual_encoder(peer, our_models, tmp_path):
    prompts = {side: PROMPTS[side] for side in ("query", "document")}
    task = BertDualEncoder(BertBackbone(our_models.CONFIG), prompts=prompts, preprocessor=our_models.preprocessor())
    save_huggingface(our_models.randomised(task), tmp_path / "x")
    with foreign_warnings():
        model = peer.SentenceTransformer(str(tmp_path / "x"), device="cpu")
        queries, documents = model.encode_query(our_models.TEXTS), model.encode_document(our_models.TEXTS)
    np.testing.assert_allclose(task.encode_queries(our_models.TEXTS, verbose=0), queries, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(task.encode_documents(our_models.TEXTS, verbose=0), documents, rtol=0, atol=TOLERANCE)
    assert load_task(tmp_path / "x", "dual_encoder").prompts == prompts


@pytest.mark.parametrize("name", ["Identity", "Tanh"])
@pytest.mark.parametrize("key", ["sbert_ce_default_activation_function", "sentence_transformers"])
def test_cross_encoders_of_older_releases(peer, our_models, tmp_path, key, name):
    task = our_models.randomised(BertCrossEncoder(BertBackbone(our_models.CONFIG), our_models.preprocessor()))
    config = save_huggingface(task, tmp_path / "x") / "config.json"
    path = f"torch.nn.modules.{'linear' if name == 'Identity' else 'activation'}.{name}"
    values = {name: value for name, value in json.loads(config.read_text()).items() if name != "sentence_transformers"}
    values[key] = {"version": "4.0.1", "activation_fn": path} if key == "sentence_transformers" else path
    config.write_text(json.dumps(values))
    pairs = our_models.TEXTS, our_models.TEXTS[::-1]
    with foreign_warnings():
        theirs = peer.CrossEncoder(str(tmp_path / "x"), device="cpu").predict(list(zip(*pairs, strict=True)))
    scores = load_task(tmp_path / "x").answer(pairs)["score"]
    np.testing.assert_allclose(scores, theirs, rtol=0, atol=TOLERANCE)
