import json
import re

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert_layers import load_backbone, load_task, save_huggingface
from keras_bert_layers.checkpoints import CheckpointError, load_report
from keras_bert_layers.checkpoints.huggingface.directory import HuggingFaceDirectory
from keras_bert_layers.tasks.recipes.combined_tasks import CombinedTasks
from keras_bert_layers.tasks.recipes.layer_reducer import reduce_layers
from keras_bert_layers.tasks.recipes.vocabulary_pruner import prune_vocabulary

pytestmark = pytest.mark.filterwarnings("ignore:.*`auto_map` names code")
LAYOUTS = ("former", "folders")


@pytest.fixture(scope="module")
def numbers(jina):
    """The base's tensors, and the stacked adapters."""
    rng = np.random.default_rng(11)
    return jina.base_tensors(rng), jina.stacks(rng)


@pytest.fixture(scope="module")
def directories(jina, numbers, tmp_path_factory):
    """A directory of each layout, the base alone, and the base with each adapter merged by NumPy."""
    base, stacked = numbers
    folder = tmp_path_factory.mktemp("jina")
    found = {"former": jina.write_former(folder / "former", *numbers, prompts=True)}
    found["folders"] = jina.write_folders(folder / "folders", *numbers, prompts=True)
    found[None] = jina.write(folder / "base", jina.CONFIG, base, prompts=True)
    for index, name in enumerate(jina.ADAPTERS):
        found[name] = jina.write(folder / str(index), jina.CONFIG, jina.merged(base, stacked, name), prompts=True)
    return found


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_adapter_is_merged(jina, directories, layout):
    for name in (None, "text-matching"):
        ours, expected = load_backbone(directories[layout], adapter=name), load_backbone(directories[name])
        for mine, theirs in zip(ours.weights, expected.weights, strict=True):
            np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=0, atol=1e-6, err_msg=mine.path)
        line = f"the adapter '{name}' was added to 15 tensors" if name else "the adapters ['"
        assert any(note.startswith(line) for note in load_report(ours).notes)
        assert not load_report(ours).unknown
    assert HuggingFaceDirectory(directories[layout], owner="load_task").adapters.keys() == set(jina.ADAPTERS)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_names_that_there_are_not(directories, layout):
    with pytest.raises(CheckpointError, match=r"`adapter` must be one of \[.*'separation'.*\]\. Received: 'query'\."):
        load_backbone(directories[layout], adapter="query")
    load_backbone(directories[layout], adapter="text_matching")


def test_a_checkpoint_without_adapters(directories, checkpoint):
    for directory in (directories[None], checkpoint):
        with pytest.raises(CheckpointError, match=r"`adapter` must be None: there are no adapters to choose from\."):
            load_task(directory, "sentence_encoder", adapter="separation")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"lora_rank": 3},
            r"config\.json: the adapter must fit '.*' of shape .*\. Received: \(\d+, 2\), \(2, \d+\)\.$",
        ),
        ({"lora_rank": None}, "not an adapter's config"),
        ({"lora_adaptations": ["separation"]}, r"'.*lora_A' must have 1 adapters\. Received: shape=\(5, 1, 2\)"),
        ({"lora_adaptations": "separation"}, r"`lora_adaptations` must be a list of names\."),
        ({"lora_adaptations": [1]}, r"`lora_adaptations` must be a list of names\."),
    ],
)
def test_configs_that_do_not_fit(jina, numbers, tmp_path, changes, message):
    directory = jina.write_former(tmp_path / "x", *numbers, config={**jina.FORMER, **changes})
    with pytest.raises(CheckpointError, match=message):
        load_backbone(directory, adapter="separation")


@pytest.mark.parametrize("change", ["no B", "another rank of tensor"])
def test_damaged_stacks(jina, numbers, tmp_path, change):
    directory = jina.write_former(tmp_path / "x", *numbers)
    tensors = load_file(directory / "model.safetensors")
    name = "roberta.encoder.layers.1.mixer.Wqkv.parametrizations.weight.0.lora_B"
    tensors[name] = tensors[name][0]
    if change == "no B":
        del tensors[name]
    save_file(tensors, directory / "model.safetensors")
    with pytest.raises(CheckpointError, match=rf"config\.json: .*{re.escape(name)}' must have 5 adapters"):
        load_backbone(directory, adapter="separation")


def test_the_own_code_of_other_models_is_refused(jina, directories, tmp_path):
    directory = jina.write(tmp_path / "x", {**jina.CONFIG}, load_file(directories[None] / "model.safetensors"))
    modules = json.loads((directory / "modules.json").read_text())
    modules[0]["type"] = "custom_st.Transformer"
    (directory / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(CheckpointError, match=r"own code is never run"):
        load_task(directory)


@pytest.mark.peers
@pytest.mark.parametrize("layout", LAYOUTS)
def test_against_transformers(torch, transformers, jina, directories, layout):
    """Transformers' model of the weights that torch merges."""
    rng = np.random.default_rng(3)
    mask = (np.arange(26) < np.array([[26], [9], [1]])).astype("int32")
    ids = np.where(mask, rng.integers(2, 13, mask.shape), 1).astype("int32")
    for name in (None, *jina.ADAPTERS):
        model = transformers.AutoModel.from_pretrained(directories[name], attn_implementation="eager").eval()
        with torch.no_grad():
            theirs = model(torch.tensor(ids), attention_mask=torch.tensor(mask))
        ours = load_backbone(directories[layout], adapter=name)(
            {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": mask}
        )
        real = mask.astype(bool)
        found = theirs.last_hidden_state.numpy()[real], np.asarray(ours["sequence_output"])[real]
        np.testing.assert_allclose(*found, rtol=0, atol=2e-5)
        np.testing.assert_allclose(theirs.pooler_output.numpy(), np.asarray(ours["pooled_output"]), rtol=0, atol=2e-5)


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated")
def test_folders_are_those_of_peft(torch, transformers, jina, directories, monkeypatch):
    """PEFT itself loads each folder, and computes the same as the merged weights."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    peft = pytest.importorskip("peft")
    ids = np.random.default_rng(3).integers(2, 13, (2, 9)).astype("int32")
    for name in jina.ADAPTERS:
        base = transformers.AutoModel.from_pretrained(directories["folders"]).eval()
        folder = directories["folders"] / re.sub(r"\W", "_", name)
        model = peft.PeftModel.from_pretrained(base, str(folder)).eval()
        with torch.no_grad():
            theirs = model(torch.tensor(ids)).last_hidden_state.numpy()
        batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
        ours = load_backbone(directories["folders"], adapter=name)(batch)["sequence_output"]
        np.testing.assert_allclose(theirs, np.asarray(ours), rtol=0, atol=2e-5)


TEXTS = ["a good film", "night", "bad bad film : a night"]


@pytest.fixture(scope="module")
def encoders(directories):
    """The encoders of each layout, and those of each adapter merged by NumPy, all with prompts."""
    names = (*LAYOUTS, None, "text-matching")
    return {name: load_task(directories[name], "sentence_encoder") for name in names}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_prompt_chooses_its_adapter(jina, encoders, layout):
    encoder = encoders[layout]
    assert encoder.prompts == jina.PROMPTS
    mine = encoder.predict(TEXTS, prompt="text-matching", verbose=0)
    theirs = encoders["text-matching"].predict(TEXTS, prompt="", verbose=0)
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=2e-6)
    theirs = encoders[None].predict(TEXTS, prompt="night: ", verbose=0)
    np.testing.assert_allclose(encoder.predict(TEXTS, prompt="night: ", verbose=0), theirs, rtol=0, atol=2e-6)


@pytest.mark.slow
def test_the_sides_of_a_dual_encoder(jina, directories, encoders):
    dual = load_task(directories["folders"], "dual_encoder")
    assert dual.prompts == {"query": jina.PROMPTS["retrieval.query"], "document": jina.PROMPTS["retrieval.passage"]}
    for side in ("queries", "documents"):
        mine, theirs = (getattr(each, f"encode_{side}")(TEXTS, verbose=0) for each in (dual, encoders["folders"]))
        np.testing.assert_allclose(mine, theirs, atol=2e-6)


@pytest.mark.slow
def test_one_adapter_of_a_task_works_as_any_encoder(jina, directories, encoders, tmp_path):
    encoder = load_task(directories["former"], adapter="retrieval.query")
    assert encoder.backbone.adapters == {}
    expected = encoders["former"].predict(TEXTS, prompt="retrieval.query", verbose=0)
    np.testing.assert_allclose(encoder.predict(TEXTS, prompt="retrieval.query", verbose=0), expected, atol=2e-6)
    again = load_task(save_huggingface(encoder, tmp_path / "x"))
    np.testing.assert_allclose(again.predict(TEXTS, prompt="retrieval.query", verbose=0), expected, atol=2e-6)


def test_what_cannot_be_done_with_adapters(encoders, tmp_path):
    encoder = encoders["former"]
    for function in (
        lambda: encoder.quantize("int8"),
        lambda: encoder.backbone.enable_lora(2),
        lambda: save_huggingface(encoder, tmp_path / "x"),
        lambda: save_huggingface(encoder.backbone, tmp_path / "x"),
        lambda: encoder.export(tmp_path / "x.onnx", format="onnx"),
        lambda: reduce_layers(encoder, 1),
        lambda: prune_vocabulary(encoder, TEXTS),
        lambda: CombinedTasks({"a": encoder}),
    ):
        with pytest.raises(
            ValueError, match=r"must have no adapters .* Load one adapter, merged into the weights: `load_"
        ):
            function()


def test_an_adapter_that_replaces_weights(jina, numbers, tmp_path):
    directory = jina.write_folders(tmp_path / "x", *numbers, prompts=True)
    path = directory / "separation" / "adapter_model.safetensors"
    tensors = load_file(path)
    save_file({**tensors, "base_model.model.pooler.dense.bias": np.zeros(12, "float32")}, path)
    with pytest.raises(
        CheckpointError, match=r"the adapter 'separation' must only add products .* 'pooler\.dense\.bias'"
    ):
        load_task(directory)
    load_task(directory, adapter="separation")


def test_a_directory_without_modules(jina, numbers, tmp_path):
    directory = jina.write_folders(tmp_path / "x", *numbers)
    (directory / "modules.json").unlink()
    encoder = load_task(directory)
    assert encoder.prompts == dict.fromkeys(sorted(jina.ADAPTERS), "")
