"""Every family of the table: equal to transformers on the same directory, or refused with the reason."""

import json
import re
import warnings

import numpy as np
import pytest
from family_table import FAMILIES, vocabularies, writer

from keras_bert_layers import load_backbone, load_preprocessor, load_task

pytestmark = pytest.mark.peers

# What two float32 implementations may differ by; the project's promise.
TOLERANCE = 2e-5
AUTO = {
    "classifier": "AutoModelForSequenceClassification",
    "cross_encoder": "AutoModelForSequenceClassification",
    "masked_lm": "AutoModelForMaskedLM",
    "multiple_choice": "AutoModelForMultipleChoice",
    "pretrainer": "AutoModelForPreTraining",
    "question_answerer": "AutoModelForQuestionAnswering",
    "token_classifier": "AutoModelForTokenClassification",
}
NAMES = {"token_ids": "input_ids", "segment_ids": "token_type_ids", "padding_mask": "attention_mask"}
LOADS = [family for family in FAMILIES if family.refused is None]


def cases(families):
    return pytest.mark.parametrize("family", families, ids=[family.name for family in families])


@pytest.fixture
def directory(transformers, family, tmp_path):
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return writer.write(family, tmp_path / "checkpoint")


def load(family, directory, **options):
    """The task or the encoder, with no other warnings than the family's."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if family.task is None:
            model = load_backbone(directory)
        else:
            model = load_task(directory, family.task if family.asks else None, **options)
    check_warnings(family, caught)
    return model


def check_warnings(family, caught):
    allowed = re.compile("|".join(filter(None, ("has no pooler", family.warns))))
    texts = [str(warning.message) for warning in caught]
    assert not [text for text in texts if not allowed.search(text)], texts


def preprocessor_of(family, directory):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        preprocessor = load_preprocessor(directory)
    check_warnings(family, caught)
    if family.warns == "lower":
        assert any("lower" in str(warning.message) for warning in caught)
    return preprocessor


def their_batch(tokenizer, texts, length):
    texts = (
        ([first for first, _ in texts], [second for _, second in texts]) if isinstance(texts[0], tuple) else (texts,)
    )
    return tokenizer(*map(list, texts), padding=True, truncation=True, max_length=length, return_tensors="np")


def assert_same_ids(ours, theirs):
    for name, values in theirs.items():
        mine = {theirs_name: ours.get(name) for name, theirs_name in NAMES.items()}[name]
        if mine is not None:
            np.testing.assert_array_equal(mine, values, err_msg=name)


@pytest.fixture(scope="module")
def known_ids():
    """Ids of the texts, by the configuration of a preprocessor: what many families share is computed once."""
    return {}


def ids_of(known_ids, preprocessor, sides):
    key = json.dumps([preprocessor.get_config(), sides])
    if key not in known_ids:
        known_ids[key] = {name: np.asarray(values) for name, values in preprocessor(sides).items()}
    return known_ids[key]


def assert_ids_are_transformers(torch, transformers, known_ids, family, directory, their_model):
    """Texts and pairs have the same ids; and a relative, which has its own segments or none, the same outputs."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    preprocessor = preprocessor_of(family, directory)
    assert preprocessor.max_length <= tokenizer.model_max_length
    for texts in (vocabularies.texts_of(family.vocabulary), vocabularies.PAIRS):
        sides = tuple(list(side) for side in zip(*texts, strict=True)) if texts is vocabularies.PAIRS else list(texts)
        ours = ids_of(known_ids, preprocessor, sides)
        theirs = their_batch(tokenizer, texts, preprocessor.max_length)
        assert_same_ids(ours, theirs)
    if family.config["model_type"] == "bert" and family.vocabulary not in writer.SENTENCE_PIECES:
        return
    # What both make of the pairs, each with its own inputs.
    with torch.no_grad():
        batch = {name: torch.tensor(values) for name, values in theirs.items()}
        expected = their_model.base_model(**batch).last_hidden_state
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sequence = load_backbone(directory)(ours)["sequence_output"]
    assert_same_outputs({"sequence": sequence}, {"sequence": expected.numpy()}, ours)


@pytest.fixture
def inputs(family, directory):
    """Random ids of a padded batch: the encoder's own part of the comparison."""
    config = json.loads((directory / "config.json").read_text("utf-8"))
    rng = np.random.default_rng(4)
    mask = np.arange(17) < np.array([[17], [7], [2], [12]])
    padding = config.get("pad_token_id") or 0
    token_ids = np.where(
        mask, rng.integers(8, config.get("vocab_size") if family.vocabulary else 300, mask.shape), padding
    )
    segment_ids = rng.integers(0, max(config.get("type_vocab_size", 1), 1), mask.shape) * mask
    arrays = {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": mask}
    return {name: values.astype("int32") for name, values in arrays.items()}


def load_theirs(torch, transformers, family, directory):
    kind = getattr(transformers, family.reference or AUTO.get(family.task, "AutoModel"))
    if family.asks and family.reference is None and "architectures" not in family.config:
        kind = getattr(transformers, AUTO[family.task])
    return kind.from_pretrained(directory, dtype=torch.float32).eval()


def their_outputs(torch, family, model, inputs):
    batch = {theirs: torch.tensor(inputs[ours]) for ours, theirs in NAMES.items()}
    if family.config["model_type"] in ("distilbert", "modernbert", "mpnet"):
        del batch["token_type_ids"]
    if family.task == "multiple_choice":
        batch = {name: tensor.reshape(2, 2, -1) for name, tensor in batch.items()}
    with torch.no_grad():
        outputs = model(**batch)
    return {name: values.numpy() for name, values in outputs.items()}


def our_outputs(family, model, inputs):
    """Our outputs, by transformers' names."""
    if family.task in ("masked_lm", "pretrainer"):
        length = inputs["token_ids"].shape[1]
        positions = np.tile(np.arange(length, dtype="int32"), (len(inputs["token_ids"]), 1))
        outputs = model({**inputs, "mask_positions": positions})
        if family.task == "masked_lm":
            return {"logits": outputs}
        return {"prediction_logits": outputs["masked_lm"], "seq_relationship_logits": outputs["next_sentence"]}
    if family.task == "sentence_encoder":
        return {"embeddings": model(inputs)}
    if family.task == "sparse_encoder":
        return {"weights": model(inputs)}
    if family.task is None:
        outputs = model(inputs)
        return {"last_hidden_state": outputs["sequence_output"], "pooler_output": outputs["pooled_output"]}
    if family.task == "multiple_choice":
        inputs = {name: values.reshape(2, 2, -1) for name, values in inputs.items()}
    outputs = model(inputs)
    return outputs if isinstance(outputs, dict) else {"logits": outputs}


def pooled(family, directory, sequence, mask):
    """The vectors of sentence-transformers' modules, in NumPy."""
    from safetensors.numpy import load_file

    if family.files["1_Pooling/config.json"]["pooling_mode_cls_token"]:
        vectors = sequence[:, 0]
    else:
        vectors = (sequence * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    if "2_Dense/config.json" in family.files:
        dense = load_file(directory / "2_Dense" / "model.safetensors")
        vectors = vectors @ dense["linear.weight"].T + dense.get("linear.bias", 0)
        if family.files["2_Dense/config.json"]["activation_function"].endswith("Tanh"):
            vectors = np.tanh(vectors)
    if any(module["type"].endswith("Normalize") for module in family.files["modules.json"]):
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def assert_same_outputs(ours, theirs, inputs):
    """Equal at all real positions; of spans, where an answer may stand."""
    real = inputs["padding_mask"].astype(bool)
    compared = ours.keys() & theirs.keys()
    assert compared
    for name in compared:
        mine, yours = np.asarray(ours[name], np.float32), theirs[name]
        assert mine.shape == yours.shape, name
        if mine.shape[:2] == real.shape:
            where = real & (mine > -1e4) if mine.ndim == 2 else real
            mine, yours = mine[where], yours[where]
        np.testing.assert_allclose(mine, yours, rtol=0, atol=TOLERANCE, err_msg=name)


@cases(LOADS)
def test_equals_transformers(torch, transformers, known_ids, family, directory, inputs):
    """Ids, outputs, and the names of classes, on the same directory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of transformers
        their_model = load_theirs(torch, transformers, family, directory)
        theirs = their_outputs(torch, family, their_model, inputs)
    if family.vocabulary and not family.refused_text:
        assert_ids_are_transformers(torch, transformers, known_ids, family, directory, their_model)
    model = load(family, directory, preprocessor=None)
    ours = our_outputs(family, model, inputs)
    if family.task == "sentence_encoder":
        theirs["embeddings"] = pooled(family, directory, theirs["last_hidden_state"], inputs["padding_mask"])
    if family.task == "sparse_encoder":
        weights = np.log1p(np.maximum(theirs["logits"], 0)) * inputs["padding_mask"][..., None]
        theirs["weights"] = weights.max(axis=1)
    if not stored(family, directory, "pooler"):
        ours.pop("pooler_output", None)
    assert_same_outputs(ours, theirs, inputs)
    if family.activation is not None:
        assert model.activation == family.activation
    if family.labels is not None:
        names = model.tag_names if family.task == "token_classifier" else model.class_names
        assert tuple(names) == family.labels


def stored(family, directory, part):
    if family.weights_file.endswith(".bin"):
        import torch

        names = torch.load(directory / family.weights_file, weights_only=True).keys()
    else:
        from safetensors import safe_open

        with safe_open(directory / family.weights_file, "np") as file:
            names = list(file.keys())
    return any(part in name for name in names)


@cases([family for family in FAMILIES if family.refused])
def test_refusals_state_the_reason(family, directory):
    for name in family.refused_by:
        loader = {"load_backbone": load_backbone, "load_task": load_task}[name]
        with pytest.raises(ValueError, match=family.refused) as caught:
            loader(directory)
        assert len(str(caught.value)) < 800, "one can read it"


@cases([family for family in FAMILIES if family.refused_text])
def test_text_is_refused_where_the_tokenizer_is_another(family, directory):
    with pytest.raises(ValueError, match=family.refused_text):
        load_preprocessor(directory)
