"""`save_peft`: the files, read back beside the base, and read by PEFT itself."""

import dataclasses
import json
import shutil
import warnings

import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_bert_layers import BertBackbone, load_backbone, load_task, save_huggingface, save_peft
from keras_bert_layers.checkpoints import CheckpointError

pytestmark = pytest.mark.filterwarnings("ignore:.*has no pooler")
HIDDEN, INNER, RANK, ALPHA = 15, 22, 3, 7
# Both read the same numbers; merging adds in another order.
READ_BACK, PEER = 1e-6, 1e-5
# Kind of model -> its type for PEFT, and the modules that are saved complete, with the shapes of their tensors.
POOLER = {"bert.pooler.dense.weight": (HIDDEN, HIDDEN), "bert.pooler.dense.bias": (HIDDEN,)}
KINDS = {
    "backbone": ("FEATURE_EXTRACTION", None, {}),
    "classifier": ("SEQ_CLS", ["classifier", "pooler"], {"classifier": 3, **POOLER}),
    "cross_encoder": ("SEQ_CLS", ["classifier", "pooler"], {"classifier": 1, **POOLER}),
    "multiple_choice": (None, ["classifier", "pooler"], {"classifier": 1, **POOLER}),
    "question_answerer": (None, ["qa_outputs"], {"qa_outputs": 2}),
    "token_classifier": ("TOKEN_CLS", ["classifier"], {"classifier": 4}),
}
AUTO = {
    **{"FEATURE_EXTRACTION": "ForFeatureExtraction", "SEQ_CLS": "ForSequenceClassification"},
    **{"TOKEN_CLS": "ForTokenClassification", None: ""},
}
OWN = {"multiple_choice": "BertForMultipleChoice", "question_answerer": "BertForQuestionAnswering"}
DENSES = {
    **{f"attention.self.{name}": (HIDDEN, HIDDEN) for name in ("query", "key", "value")},
    **{"attention.output.dense": (HIDDEN, HIDDEN), "intermediate.dense": (HIDDEN, INNER)},
    "output.dense": (INNER, HIDDEN),
}
RELATIVES = {
    "distilbert": {"num_segments": 0, "pooler_activation": "relu", "layer_norm_epsilon": 1e-12},
    "electra": {"pooler_activation": "gelu_erf", "embedding_dim": 9},
    "xlm-roberta": {"position_offset": 1},
}


@pytest.fixture
def trained(our_models, tmp_path):
    """A function that makes a task with LoRA and random numbers in all that it trains; its base is beside it."""

    def make(kind, **changes):
        config = dataclasses.replace(our_models.CONFIG, dropout=0.0, attention_dropout=0.0, **changes)
        base = our_models.randomised(BertBackbone(config))
        directory = save_huggingface(base, tmp_path / "base", preprocessor=our_models.preprocessor())
        backbone = load_backbone(directory)
        backbone.enable_lora(RANK, ALPHA)
        task = our_models.MAKERS[kind](backbone, our_models.preprocessor())
        rng = np.random.default_rng(8)
        for weight in task.trainable_weights:
            weight.assign(rng.normal(0, 0.2, weight.shape))
        return task

    return make


def ids(task):
    """Two rows of ids, the second padded; or one row of two choices."""
    mask = np.arange(9) < np.array([[9], [4]])
    token_ids, segment_ids = (np.arange(18).reshape(2, 9) * 7 % size * mask for size in (23, 2))
    names = {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": mask}
    shape = (1, 2, 9) if type(task).__name__ == "BertMultipleChoice" else (2, 9)
    return {name: value.reshape(shape).astype("int32") for name, value in names.items()}


def outputs(task):
    """The outputs in transformers' order, at tokens where they have a meaning."""
    found = task.predict(ids(task), verbose=0)
    names = ("sequence_output", "pooled_output", "start_logits", "end_logits")
    return real(task, [found[name] for name in names if name in found] if isinstance(found, dict) else [found])


def real(task, values):
    mask = ids(task)["padding_mask"].astype(bool)
    if type(task).__name__ == "BertQuestionAnswerer":
        mask = np.argwhere(ids(task)["segment_ids"] * mask)  # where an answer may stand
        return [value[tuple(mask.T)] for value in values]
    return [value[mask] if value.shape[:2] == mask.shape == (2, 9) else value for value in values]


@pytest.mark.parametrize("kind", KINDS)
def test_files(trained, tmp_path, kind):
    task_type, heads, complete = KINDS[kind]
    task = trained(kind)
    directory = save_peft(task, tmp_path / "adapter", base="google-bert/bert-base-uncased")
    assert sorted(path.name for path in directory.iterdir()) == ["adapter_config.json", "adapter_model.safetensors"]
    own = {"base_model_class": OWN[kind], "parent_library": "transformers"} if kind in OWN else None
    assert json.loads((directory / "adapter_config.json").read_text("utf-8")) == {
        "auto_mapping": own,
        "base_model_name_or_path": "google-bert/bert-base-uncased",
        "bias": "none",
        "inference_mode": True,
        "lora_alpha": ALPHA,
        "modules_to_save": heads,
        "peft_type": "LORA",
        "r": RANK,
        "target_modules": sorted(DENSES),
        "task_type": task_type,
        "use_rslora": False,
    }
    prefix = "base_model.model." + ("" if kind == "backbone" else "bert.")
    expected = {}
    for name, shape in complete.items():
        parts = (
            {name: shape} if isinstance(shape, tuple) else {f"{name}.weight": (shape, HIDDEN), f"{name}.bias": (shape,)}
        )
        expected |= {f"base_model.model.{part}": size for part, size in parts.items()}
    for index in range(2):
        for name, (inputs, units) in DENSES.items():
            module = f"{prefix}encoder.layer.{index}.{name}"
            expected |= {f"{module}.lora_A.weight": (RANK, inputs), f"{module}.lora_B.weight": (units, RANK)}
    found = load_file(directory / "adapter_model.safetensors")
    assert {name: tensor.shape for name, tensor in found.items()} == expected
    fused = (task if kind == "backbone" else task.backbone).get_layer("encoder_block_1").attention.query_key_value
    for index, name in enumerate(("query", "key", "value")):
        module = f"{prefix}encoder.layer.1.attention.self.{name}"
        np.testing.assert_array_equal(found[f"{module}.lora_A.weight"], fused.lora_kernel_a.numpy().T)
        third = fused.lora_kernel_b.numpy()[:, index * HIDDEN : (index + 1) * HIDDEN]
        np.testing.assert_array_equal(found[f"{module}.lora_B.weight"], third.T)


@pytest.mark.parametrize(
    ("kind", "changes"), [*((kind, {}) for kind in KINDS), ("classifier", RELATIVES["distilbert"])]
)
def test_read_beside_the_base(trained, tmp_path, kind, changes):
    task = trained(kind, **changes)
    save_peft(task, tmp_path / "adapter", base=tmp_path / "base")
    backbone = task if kind == "backbone" else task.backbone
    assert np.abs(outputs(load_backbone(tmp_path / "base"))[0] - outputs(backbone)[0]).max() > 0.1
    shutil.copytree(tmp_path / "adapter", tmp_path / "base", dirs_exist_ok=True)
    again = load_backbone(tmp_path / "base") if kind == "backbone" else load_task(tmp_path / "base", kind)
    for mine, yours in zip(outputs(task), outputs(again), strict=True):
        np.testing.assert_allclose(mine, yours, rtol=0, atol=READ_BACK * max(1, np.abs(mine).max()))


def test_alpha_is_the_rank_by_default(our_models, tmp_path):
    backbone = BertBackbone(our_models.CONFIG)
    backbone.enable_lora(5)
    values = json.loads((save_peft(backbone, tmp_path / "x") / "adapter_config.json").read_text("utf-8"))
    assert (values["r"], values["lora_alpha"], values["base_model_name_or_path"]) == (5, 5, None)


class TestErrors:
    @pytest.mark.parametrize("kind", ["masked_lm", "pretrainer", "sentence_encoder", "dual_encoder"])
    def test_heads(self, trained, tmp_path, kind):
        message = (
            r"`save_peft`: `model` must be a backbone or one of the tasks classifier, .*Save `model\.backbone`\. `sa"
        )
        with pytest.raises(ValueError, match=message):
            save_peft(trained(kind), tmp_path / "x")

    def test_no_lora(self, our_models, tmp_path):
        message = r"must have a backbone with LoRA\. Received: model='BertClassifier'\. Call `enable_lora\(rank\)`"
        with pytest.raises(ValueError, match=message):
            save_peft(our_models.make("classifier"), tmp_path / "x")

    def test_more_was_trained(self, trained, tmp_path):
        task = trained("classifier")
        task.backbone.get_layer("pooler").weights[0].trainable = True
        save_peft(task, tmp_path / "x")  # which is saved anyway
        task.backbone.get_layer("embedding").weights[-1].trainable = True
        message = (
            r"must train only LoRA in its backbone\. Received: model='trainable weights embedding/.*`save_huggingface`"
        )
        with pytest.raises(ValueError, match=message):
            save_peft(task, tmp_path / "y")

    def test_base(self, our_models, trained, tmp_path):
        with pytest.raises(TypeError, match=r"`save_peft`: `base` must be a name, a path or None\. Received: base=7"):
            save_peft(our_models.make("backbone"), tmp_path / "x", base=7)
        with pytest.raises(CheckpointError, match=r"`save_peft`: `directory` must be new, or an empty directory"):
            save_peft(trained("backbone"), tmp_path)


@pytest.mark.peers
@pytest.mark.parametrize(
    ("kind", "relative"),
    [
        *((kind, "bert") for kind in KINDS),
        *(("classifier", name) for name in RELATIVES),
        ("token_classifier", "electra"),
    ],
)
def test_against_peft(torch, transformers, tmp_path, trained, kind, relative, monkeypatch):
    peft = pytest.importorskip("peft")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    task = trained(kind, **RELATIVES.get(relative, {}))
    directory = save_peft(task, tmp_path / "adapter", base=tmp_path / "base")
    num_labels = {"classifier": 3, "cross_encoder": 1, "token_classifier": 4}.get(kind)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*is_gradient_checkpointing", FutureWarning)  # of PEFT
        auto = getattr(peft, f"AutoPeftModel{AUTO[KINDS[kind][0]]}")
        model = auto.from_pretrained(directory, **({"num_labels": num_labels} if num_labels else {}))
    adapted = [name for name, module in model.named_modules() if hasattr(module, "lora_A") and "base_layer" not in name]
    assert len(adapted) == 2 * len(DENSES)
    names = {"token_ids": "input_ids", "padding_mask": "attention_mask", "segment_ids": "token_type_ids"}
    if relative == "distilbert":
        del names["segment_ids"]
    with torch.no_grad():
        theirs = model.eval()(**{name: torch.tensor(ids(task)[ours]) for ours, name in names.items()})
    theirs = real(task, [value.numpy() for value in theirs.values()])
    for mine, yours in zip(outputs(task), theirs, strict=True):
        np.testing.assert_allclose(mine, yours, rtol=0, atol=PEER * max(1, np.abs(mine).max()))
