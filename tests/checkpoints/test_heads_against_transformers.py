"""Heads of directories whose config does not state them, read by transformers and here."""

import json

import numpy as np
import pytest

from keras_bert_layers import load_task, save_huggingface

pytestmark = pytest.mark.peers

# What two float32 implementations may differ by; the project's promise.
TOLERANCE = 2e-5
MLM, BOTH, SEQUENCE, TOKENS = (
    f"BertFor{kind}" for kind in ("MaskedLM", "PreTraining", "SequenceClassification", "TokenClassification")
)


def edited(directory, **changes):
    path = directory / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **changes}), "utf-8")
    return directory


@pytest.fixture(scope="module")
def ids():
    rng = np.random.default_rng(4)
    mask = (np.arange(9) < np.array([[9], [5], [1], [7]])).astype("int32")
    return {
        "token_ids": (rng.integers(0, 23, mask.shape) * mask).astype("int32"),
        "segment_ids": (rng.integers(0, 4, mask.shape) * mask).astype("int32"),
        "padding_mask": mask,
    }


def theirs(torch, model, ids):
    names = {"token_ids": "input_ids", "segment_ids": "token_type_ids", "padding_mask": "attention_mask"}
    batch = {theirs: torch.tensor(ids[ours]) for ours, theirs in names.items()}
    with torch.no_grad():
        return {name: value.numpy() for name, value in model.eval()(**batch).items()}


def make(torch, transformers, kind, **options):
    sizes = {"vocab_size": 23, "hidden_size": 15, "num_hidden_layers": 2, "num_attention_heads": 3}
    sizes |= {"intermediate_size": 22, "max_position_embeddings": 17, "type_vocab_size": 4}
    torch.manual_seed(3)
    model = getattr(transformers, kind)(transformers.BertConfig(**sizes, **options))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3)
    return model.eval()


def masked(task, ids):
    positions = np.tile(np.arange(9, dtype="int32"), (4, 1))
    outputs = task.predict({**ids, "mask_positions": positions}, verbose=0)
    return outputs["masked_lm"] if isinstance(outputs, dict) else outputs


@pytest.mark.parametrize("kind", [SEQUENCE, TOKENS])
@pytest.mark.parametrize("labels", [3, 5])
def test_classifiers(torch, transformers, ids, tmp_path, kind, labels):
    names = {index: f"B-{index}" for index in range(1, labels)} | {0: "O"}
    model = make(torch, transformers, kind, id2label=names, label2id={n: i for i, n in names.items()})
    model.save_pretrained(tmp_path)
    name = "classifier" if kind == SEQUENCE else "token_classifier"
    task = load_task(edited(tmp_path, architectures=["Mine", "BertModel"]), name, preprocessor=None)
    mine, yours = task.predict(ids, verbose=0), theirs(torch, model, ids)["logits"]
    real = ids["padding_mask"].astype(bool) if mine.ndim == 3 else np.ones(4, bool)
    np.testing.assert_allclose(mine[real], yours[real], rtol=0, atol=TOLERANCE)


def test_regression(torch, transformers, ids, tmp_path):
    model = make(torch, transformers, SEQUENCE, num_labels=3, problem_type="regression")
    model.save_pretrained(tmp_path / "theirs")
    task = load_task(tmp_path / "theirs", preprocessor=None)
    yours = theirs(torch, model, ids)["logits"]
    np.testing.assert_allclose(task.predict(ids, verbose=0), yours, rtol=0, atol=TOLERANCE)
    again = transformers.BertForSequenceClassification.from_pretrained(save_huggingface(task, tmp_path / "ours"))
    assert (again.config.problem_type, again.config.num_labels) == ("regression", 3)
    np.testing.assert_allclose(theirs(torch, again, ids)["logits"], yours, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("architecture", [MLM, "BertLMHeadModel", "AntiBERTy", None])
def test_masked_lm(torch, transformers, ids, tmp_path, architecture):
    model = make(torch, transformers, MLM)
    model.save_pretrained(tmp_path)
    edited(tmp_path, architectures=architecture and [architecture])
    mine, yours = masked(load_task(tmp_path, preprocessor=None), ids), theirs(torch, model, ids)["logits"]
    real = ids["padding_mask"].astype(bool)
    np.testing.assert_allclose(mine[real], yours[real], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("kind", [MLM, BOTH])
@pytest.mark.parametrize("is_said", [True, False])
def test_a_decoder_of_its_own(torch, transformers, ids, tmp_path, kind, is_said):
    """transformers keeps two matrices that differ apart, whatever the config states."""
    model = make(torch, transformers, kind, tie_word_embeddings=False)
    model.save_pretrained(tmp_path / "theirs")
    if not is_said:
        edited(tmp_path / "theirs", tie_word_embeddings=True)
    task = load_task(tmp_path / "theirs", preprocessor=None)
    name, real = "logits" if kind == MLM else "prediction_logits", ids["padding_mask"].astype(bool)
    yours = theirs(torch, getattr(transformers, kind).from_pretrained(tmp_path / "theirs"), ids)[name]
    np.testing.assert_allclose(masked(task, ids)[real], yours[real], rtol=0, atol=TOLERANCE)
    ours = save_huggingface(task, tmp_path / "ours")
    again, loading = getattr(transformers, kind).from_pretrained(ours, output_loading_info=True)
    assert not any(loading.values()), loading
    np.testing.assert_allclose(theirs(torch, again, ids)[name][real], yours[real], rtol=0, atol=TOLERANCE)
