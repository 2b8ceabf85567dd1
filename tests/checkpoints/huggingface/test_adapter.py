import json
import math
import os
import random
import warnings
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert_layers import load_backbone, load_task
from keras_bert_layers.checkpoints import CheckpointError, load_report
from keras_bert_layers.checkpoints.huggingface.directory import HuggingFaceDirectory

# What PEFT writes; the keys without influence are a part of them.
CONFIG = {
    **{"peft_type": "LORA", "r": 2, "lora_alpha": 6, "use_rslora": False, "use_dora": False, "bias": "none"},
    **{"task_type": "SEQ_CLS", "inference_mode": True, "lora_dropout": 0.1, "modules_to_save": ["classifier"]},
    **{
        "target_modules": ["query", "value"],
        "init_lora_weights": True,
        "fan_in_fan_out": False,
        "peft_version": "0",
    },
    **{"layer_replication": None, "loftq_config": {}, "rank_pattern": {}, "alpha_pattern": {}, "qalora_group_size": 16},
    **{"trainable_token_indices": None, "use_qalora": False, "lora_bias": False, "runtime_config": {"a": False}},
    "base_model_name_or_path": "",
}
QUERY, DENSE = "bert.encoder.layer.0.attention.self.query", "bert.encoder.layer.1.output.dense"
WORDS = "bert.embeddings.word_embeddings"


def low_rank(module, rank, rng, *, inputs=15, outputs=15, kind=""):
    last = "" if kind else ".weight"
    return {
        f"base_model.model.{module}.lora_{kind}A{last}": rng.normal(size=(rank, inputs)).astype("float32"),
        f"base_model.model.{module}.lora_{kind}B{last}": rng.normal(size=(outputs, rank)).astype("float32"),
    }


@pytest.fixture
def parts(huggingface, tmp_path):
    """A classifier's directory, its tensors, and the tensors of an adapter."""
    tensors = huggingface.random_tensors(prefix="bert.", head=3)
    directory = huggingface.write(
        tmp_path / "model", config={**huggingface.CONFIG, **huggingface.CLASSIFIER}, tensors=tensors
    )
    rng = np.random.default_rng(7)
    adapter = {
        **low_rank(QUERY, 2, rng),
        **low_rank(DENSE, 4, rng, inputs=22),
        **low_rank(WORDS, 2, rng, inputs=23, kind="embedding_"),
        "base_model.model.classifier.weight": rng.normal(size=(3, 15)).astype("float32"),
        "base_model.model.classifier.modules_to_save.bias": rng.normal(size=3).astype("float32"),
        f"base_model.model.{QUERY}.base_layer.bias": rng.normal(size=15).astype("float32"),
    }
    return directory, tensors, adapter


def write_adapter(directory, adapter, **changes):
    (directory / "adapter_config.json").write_text(json.dumps({**CONFIG, **changes}))
    save_file(adapter, directory / "adapter_model.safetensors")


def opened(directory):
    return HuggingFaceDirectory(directory, owner="load_backbone").open_weights()


@pytest.mark.parametrize("rslora", [False, True])
def test_against_numpy(parts, rslora):
    directory, tensors, adapter = parts
    write_adapter(directory, adapter, use_rslora=rslora, rank_pattern={"output.dense": 4}, alpha_pattern={"dense": 3})
    found = opened(directory)
    part = {name.removeprefix("base_model.model."): value for name, value in adapter.items()}
    root = math.sqrt if rslora else float
    expected = {
        **tensors,
        f"{QUERY}.weight": tensors[f"{QUERY}.weight"]
        + 6 / root(2) * part[f"{QUERY}.lora_B.weight"] @ part[f"{QUERY}.lora_A.weight"],
        f"{DENSE}.weight": tensors[f"{DENSE}.weight"]
        + 3 / root(4) * part[f"{DENSE}.lora_B.weight"] @ part[f"{DENSE}.lora_A.weight"],
        f"{WORDS}.weight": tensors[f"{WORDS}.weight"]
        + 6 / root(2) * (part[f"{WORDS}.lora_embedding_B"] @ part[f"{WORDS}.lora_embedding_A"]).T,
        "classifier.weight": part["classifier.weight"],
        "classifier.bias": part["classifier.modules_to_save.bias"],
        f"{QUERY}.bias": part[f"{QUERY}.base_layer.bias"],
    }
    assert found.infos.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found.read(name), value, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    "pattern",
    [
        r"^bert\.encoder\.layer\.1\.output\.dense$",
        r"encoder\.layer\.[12]\.output\.dense",
        r"layer.\d+.output.(dense|LayerNorm)",
        r"bert.*output\.dense",
        r".*\.dense",
    ],
)
def test_patterns_that_are_expressions(parts, pattern):
    r"""As PEFT matches them: `re.match(rf"(.*\.)?({pattern})$", module)`."""
    directory, _, adapter = parts
    write_adapter(directory, adapter, rank_pattern={"dense": 4})
    expected = opened(directory).read(f"{DENSE}.weight")
    write_adapter(directory, adapter, rank_pattern={r"layer\.0\.output\.dense": 9, pattern: 4})
    np.testing.assert_array_equal(opened(directory).read(f"{DENSE}.weight"), expected)


def test_the_report_states_it(parts):
    directory, _, adapter = parts
    write_adapter(directory, adapter, rank_pattern={"dense": 4})
    task = load_task(directory, preprocessor=None)
    line = "the LoRA adapter of adapter_config.json was added to 3 tensors, and 3 tensors replaced"
    assert load_report(task).notes == (line,)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_backbone(directory / "adapter_model.safetensors")
    bias = task.get_layer("classification_head").weights[1].numpy()
    np.testing.assert_array_equal(bias, adapter["base_model.model.classifier.modules_to_save.bias"])


def test_a_base_of_another_name(parts):
    directory, _, adapter = parts
    write_adapter(directory, adapter, rank_pattern={"dense": 4}, base_model_name_or_path="bert-base-cased")
    with pytest.warns(UserWarning, match=r"was trained on 'bert-base-cased'\. The weights beside it are"):
        opened(directory)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"peft_type": "IA3"}, r"be a LoRA adapter\. Received: peft_type='IA3'"),
        ({"use_dora": True}, r"be plain LoRA\. Received: use_dora=True"),
        ({"init_lora_weights": "pissa"}, r"be plain LoRA\. Received: init_lora_weights='pissa'"),
        ({"layer_replication": [[0, 1]], "new": 1}, r"Received: layer_replication=\[\[0, 1\]\], new=1"),
        ({"rank_pattern": {"(a+)+b": 1}}, r"patterns must be names of modules, or .* Received: \['\(a\+\)\+b'\]"),
        ({"rank_pattern": {".*a.*b": 1}}, r"patterns must be names of modules, or simple expressions\."),
        ({"rank_pattern": {"a" * 201: 1}}, r"patterns must be names of modules, or simple expressions\."),
        ({"r": 0}, r"not an adapter's config: float division by zero"),
        ({"lora_alpha": "x"}, r"not an adapter's config: could not convert"),
    ],
)
def test_other_adapters(parts, changes, message):
    directory, _, adapter = parts
    write_adapter(directory, adapter, **{"rank_pattern": {"dense": 4}, **changes})
    with pytest.raises(CheckpointError, match=rf"adapter_config\.json: .*{message}"):
        opened(directory)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.pop(f"base_model.model.{QUERY}.lora_A.weight"), r"fit the weights beside it\. Received: .*lora_B"),
        (lambda a: a.update(low_rank("bert.x", 2, np.random.default_rng(0))), r"fit the weights beside it"),
        (
            lambda a: a.update({f"base_model.model.{QUERY}.lora_magnitude_vector": np.ones(15)}),
            r"tensors of plain LoRA",
        ),
        (
            lambda a: a.update(low_rank(QUERY, 2, np.random.default_rng(0), inputs=14)),
            r"fit 'bert.*' of shape \(15, 1",
        ),
    ],
)
def test_adapters_that_do_not_fit(parts, change, message):
    directory, _, adapter = parts
    change(adapter)
    write_adapter(directory, adapter, rank_pattern={"dense": 4})
    merge = r"Merge it where peft is installed: peft\.AutoPeftModelForSequenceClassification\.from_pretrained\("
    with pytest.raises(CheckpointError, match=rf"{message}.*{merge}"):
        opened(directory)


@pytest.mark.parametrize("absent", [["model.safetensors"], ["config.json"], ["model.safetensors", "config.json"]])
def test_an_adapter_without_its_base(parts, absent):
    directory, _, adapter = parts
    write_adapter(directory, adapter, base_model_name_or_path="bert-base-cased")
    for name in absent:
        (directory / name).unlink()
    message = r"must be beside the weights and the config of its base\. Received: an adapter of 'bert-base-cased'\. Me"
    with pytest.raises(CheckpointError, match=message):
        load_backbone(directory)


def test_no_weights_of_the_adapter(parts):
    directory, _, _ = parts
    (directory / "adapter_config.json").write_text(json.dumps(CONFIG))
    with pytest.raises(CheckpointError, match=r"must hold adapter_model\.safetensors or adapter_model\.bin beside"):
        load_backbone(directory)


def test_damaged_configs(parts):
    """Values of any kind give tensors or an error."""
    directory, _, adapter = parts
    write_adapter(directory, {name: tensor for name, tensor in adapter.items() if DENSE not in name})
    keys, values = list(CONFIG), [None, True, -1, 0, 10**400, "x", "", [], [1], {}, {"query": None}, {"": 2}, 1e308]
    refused = 0
    for seed in range(60):
        rng = random.Random(seed)
        changes = {rng.choice(keys): rng.choice(values) for _ in range(2)}
        (directory / "adapter_config.json").write_text(json.dumps({**CONFIG, **changes}))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                opened(directory)
        except CheckpointError:
            refused += 1
    assert 6 < refused < 60


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"target_modules": ["query", "value"], "modules_to_save": ["classifier"]},
        {"target_modules": ["query", "dense"], "use_rslora": True, "bias": "all", "alpha_pattern": {"output.dense": 5}},
        {"target_modules": ["query", "word_embeddings"], "bias": "lora_only", "rank_pattern": {"query": 5}},
        {"target_modules": "all-linear", "lora_bias": True, "fan_in_fan_out": True},
    ],
)
def test_against_peft(torch, transformers, tmp_path, huggingface, options):
    """`merge_and_unload` of PEFT itself, where it is installed."""
    peft = pytest.importorskip("peft")
    torch.manual_seed(0)
    names = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    config = transformers.BertConfig(**{name: huggingface.CONFIG[name] for name in names}, num_labels=3)
    transformers.BertForSequenceClassification(config).save_pretrained(tmp_path)
    base = transformers.BertForSequenceClassification.from_pretrained(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = peft.get_peft_model(base, peft.LoraConfig(r=3, lora_alpha=7, task_type="SEQ_CLS", **options))
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if "lora_" in name or parameter.requires_grad:
                    parameter.copy_(torch.randn_like(parameter) / 3)
        model.save_pretrained(tmp_path)
    merged = model.merge_and_unload().state_dict()
    found = opened(tmp_path)
    stored = load_file(Path(tmp_path) / "model.safetensors")
    assert any(not np.array_equal(found.read(name), stored[name]) for name in stored)
    for name in found.infos:
        np.testing.assert_allclose(found.read(name), merged[name].numpy(), rtol=1e-5, atol=1e-5, err_msg=name)


MASKED_LM = "cls.predictions."
DECODER = f"{MASKED_LM}decoder.weight"


@pytest.mark.parametrize("change", ["LoRA on the embedding", "another embedding", "LoRA on the decoder"])
def test_a_tied_decoder_stays_as_it_was_trained_with(huggingface, tmp_path, change):
    rng = np.random.default_rng(2)
    shapes = {"transform.dense.weight": (15, 15), "bias": (23,)}
    shapes |= {f"transform.{name}": (15,) for name in ("dense.bias", "LayerNorm.weight", "LayerNorm.bias")}
    head = {f"{MASKED_LM}{name}": rng.normal(size=shape).astype("float32") for name, shape in shapes.items()}
    tensors = {**huggingface.random_tensors(prefix="bert."), **head}
    words = tensors[f"{WORDS}.weight"]
    directory = huggingface.write(tmp_path / "model", config={**huggingface.CONFIG}, tensors=tensors)
    decoder, other = DECODER.removesuffix(".weight"), rng.normal(size=words.shape).astype("float32")
    adapter = {
        "LoRA on the embedding": low_rank(WORDS, 2, rng, inputs=23, kind="embedding_"),
        "another embedding": {f"base_model.model.{WORDS}.modules_to_save.weight": other},
        "LoRA on the decoder": low_rank(decoder, 2, rng, outputs=23),
    }[change]
    write_adapter(directory, adapter)
    task = load_task(directory, "masked_lm", preprocessor=None)
    found = {"embedding": task.backbone.get_layer("embedding").token_embedding, "decoder": task.layers[-1].decoder}
    kept, changed = ("embedding", "decoder") if "decoder" in change else ("decoder", "embedding")
    np.testing.assert_array_equal(found[kept].numpy(), words)
    assert np.abs(found[changed].numpy() - words).max() > 1


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize("options", [{"target_modules": ["query", "word_embeddings"]}, {"target_modules": ["decoder"]}])
def test_a_masked_lm_against_peft(torch, transformers, tmp_path, huggingface, options):
    """With the adapter beside its base: `merge_and_unload` adds what is added to one of two tied matrices to both."""
    peft = pytest.importorskip("peft")
    torch.manual_seed(0)
    names = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    config = transformers.BertConfig(**{name: huggingface.CONFIG[name] for name in names})
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path)
    base = transformers.BertForMaskedLM.from_pretrained(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = peft.get_peft_model(base, peft.LoraConfig(r=3, lora_alpha=7, **options)).eval()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if "lora_" in name:
                    parameter.copy_(torch.randn_like(parameter) / 3)
        model.save_pretrained(tmp_path)
    ids = np.array([[2, 5, 9, 4, 3]], "int32")
    with torch.no_grad():
        expected = model(input_ids=torch.tensor(ids)).logits.numpy()
    task = load_task(tmp_path, "masked_lm", preprocessor=None)
    ours = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": np.ones_like(ids)}
    found = task({**ours, "mask_positions": np.arange(5, dtype="int32")[None]})
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_long_names_of_modules(parts):
    """A pattern would take the square of their length."""
    directory, _, adapter = parts
    name = "base_model.model." + "a" * 200_000
    adapter = {
        **adapter,
        f"{name}.lora_A.weight": np.ones((2, 3), "f4"),
        f"{name}.lora_B.weight": np.ones((3, 2), "f4"),
    }
    write_adapter(directory, adapter, rank_pattern={"dense": 4})
    with pytest.raises(CheckpointError, match="names of modules must have at most 1000 letters. Received: 200000"):
        opened(directory)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_config_that_is_a_pipe(parts):
    directory, _, adapter = parts
    write_adapter(directory, adapter)
    (directory / "adapter_config.json").unlink()
    os.mkfifo(directory / "adapter_config.json")
    with pytest.raises(CheckpointError, match=r"adapter_config\.json: must be a regular file"):
        opened(directory)


@pytest.mark.parametrize("base", ["a\0b", "\ud800"], ids=["NUL", "surrogate"])
def test_a_base_that_is_no_path(parts, base):
    directory, _, adapter = parts
    write_adapter(directory, adapter, rank_pattern={"dense": 4}, base_model_name_or_path=base)
    with pytest.raises(CheckpointError, match=r"adapter_config\.json: "):
        opened(directory)
