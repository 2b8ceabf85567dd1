"""Checkpoints that transformers writes, loaded here: outputs equal to its own in the same process."""

import csv
import gzip
import json
import logging
import os
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest

from keras_bert_layers import load_backbone, load_preprocessor, load_task, load_tokenizer

pytestmark = pytest.mark.peers

FOLDER = Path(__file__).parent
# pytest -o log_cli=true --log-cli-level=INFO shows the differences themselves.
logger = logging.getLogger(__name__)
# What two float32 implementations of six blocks may differ by; the project's promise.
TOLERANCE = 2e-5

PLAIN = {
    "vocab_size": 61,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 50,
    "max_position_embeddings": 19,
    "initializer_range": 0.4,  # the usual 0.02 would leave every output near its bias, and errors unseen
}


@pytest.fixture(scope="module")
def inputs():
    """A padded batch with three segments and a row of one token."""
    rng = np.random.default_rng(4)
    mask = np.arange(19) < np.array([[19], [7], [1], [12]])
    token_ids = rng.integers(0, 61, mask.shape) * mask
    segment_ids = rng.integers(0, 3, mask.shape) * mask
    return {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": mask.astype("int32")}


def randomised(torch, model):
    """Gives norms and biases numbers of their own too: fresh ones are 1 and 0 and hide what is swapped."""
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.copy_(torch.randn_like(parameter) * 0.3 + parameter)
    return model.eval()


def torch_outputs(torch, model, inputs):
    names = {"token_ids": "input_ids", "segment_ids": "token_type_ids", "padding_mask": "attention_mask"}
    with torch.no_grad():
        return model(**{theirs: torch.tensor(inputs[ours]) for ours, theirs in names.items()})


def assert_same(torch, model, directory, inputs):
    """Our backbone of a directory has the outputs of the model in memory, at all real positions."""
    expected = torch_outputs(torch, model, inputs)
    ours = load_backbone(directory).predict(inputs, batch_size=64, verbose=0)
    real = inputs["padding_mask"].astype(bool)
    sequence = expected.last_hidden_state.numpy()
    differences = {
        "sequence": np.abs(ours["sequence_output"][real] - sequence[real]).max(),
        "pooled": np.abs(ours["pooled_output"] - expected.pooler_output.numpy()).max(),
    }
    logger.info("largest differences: %s", differences)
    assert max(differences.values()) <= TOLERANCE, differences


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"hidden_act": "relu", "type_vocab_size": 3},
        {"hidden_act": "gelu_new", "layer_norm_eps": 1e-5, "type_vocab_size": 3},
        {"hidden_act": "silu", "num_attention_heads": 6, "layer_norm_eps": 1e-3},
        {"num_hidden_layers": 1, "hidden_size": 20, "intermediate_size": 7, "num_attention_heads": 5},
    ],
    ids=lambda changes: "-".join(str(value) for value in changes.values()) or "plain",
)
def test_random_models(torch, transformers, inputs, tmp_path, changes):
    config = transformers.BertConfig(**{**PLAIN, "type_vocab_size": 3, **changes})
    model = randomised(torch, transformers.BertModel(config))
    model.save_pretrained(tmp_path)
    assert_same(torch, model, tmp_path, inputs)


def test_shards_of_transformers(torch, transformers, inputs, tmp_path):
    model = randomised(torch, transformers.BertModel(transformers.BertConfig(**PLAIN, type_vocab_size=3)))
    model.save_pretrained(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 2
    assert_same(torch, model, tmp_path, inputs)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_of_transformers(torch, transformers, inputs, tmp_path, dtype):
    model = randomised(torch, transformers.BertModel(transformers.BertConfig(**PLAIN, type_vocab_size=3)))
    model.to(getattr(torch, dtype)).save_pretrained(tmp_path)
    assert_same(torch, model.float(), tmp_path, inputs)


def test_pickle_of_torch(torch, transformers, inputs, tmp_path):
    model = randomised(torch, transformers.BertModel(transformers.BertConfig(**PLAIN, type_vocab_size=3)))
    model.config.save_pretrained(tmp_path)
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    assert_same(torch, model, tmp_path, inputs)


@pytest.mark.parametrize("head", ["BertForPreTraining", "BertForMaskedLM", "BertForQuestionAnswering"])
def test_encoders_of_other_heads(torch, transformers, inputs, tmp_path, head):
    model = randomised(torch, getattr(transformers, head)(transformers.BertConfig(**PLAIN, type_vocab_size=3)))
    model.save_pretrained(tmp_path)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*has no pooler")
        backbone = load_backbone(tmp_path)
    expected = torch_outputs(torch, model.bert, inputs).last_hidden_state.numpy()
    real = inputs["padding_mask"].astype(bool)
    ours = backbone.predict(inputs, verbose=0)["sequence_output"]
    np.testing.assert_allclose(ours[real], expected[real], rtol=0, atol=TOLERANCE)


def test_classifier(torch, transformers, inputs, tmp_path):
    labels = {0: "bad", 1: "fair", 2: "good"}
    config = transformers.BertConfig(**PLAIN, type_vocab_size=3, id2label=labels, classifier_dropout=0.25)
    model = randomised(torch, transformers.BertForSequenceClassification(config))
    model.save_pretrained(tmp_path)
    task = load_task(tmp_path, preprocessor=None)
    assert (task.class_names, task.dropout) == (list(labels.values()), 0.25)
    expected = torch_outputs(torch, model, inputs).logits.numpy()
    np.testing.assert_allclose(task.predict(inputs, verbose=0), expected, rtol=0, atol=TOLERANCE)


def minilm_outputs(torch, transformers, minilm, texts):
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm)
    batch = tokenizer(texts, padding="longest", truncation=True, max_length=512, return_tensors="np")
    names = {"token_ids": "input_ids", "segment_ids": "token_type_ids", "padding_mask": "attention_mask"}
    inputs = {ours: batch[theirs] for ours, theirs in names.items()}
    return inputs, transformers.BertModel.from_pretrained(minilm, dtype=torch.float32).eval()


def test_minilm_on_own_texts(torch, transformers, minilm):
    texts = (FOLDER / "minilm_texts.txt").read_text(encoding="utf-8").splitlines()
    inputs, model = minilm_outputs(torch, transformers, minilm, texts)
    ours = load_preprocessor(minilm, max_length=512)(texts)
    for name, expected in inputs.items():
        np.testing.assert_array_equal(ours[name], expected)
    # `test_minilm_reference.py` has the outputs of all of them.
    assert_same(torch, model, minilm, {name: values[::5] for name, values in inputs.items()})


def test_minilm_on_real_texts(torch, transformers, minilm, shared_data):
    """Sentences of film reviews and paragraphs of an encyclopedia, in one batch."""
    with gzip.open(shared_data / "glue" / "SST-2" / "dev.tsv.gz", "rt", encoding="utf-8") as file:
        sentences = [row["sentence"] for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    with gzip.open(shared_data / "squad" / "v1.1-dev.json.gz", "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    paragraphs = [article["paragraphs"][0]["context"] for article in articles]
    texts = [*sentences[:8], *paragraphs[:8]]
    inputs, model = minilm_outputs(torch, transformers, minilm, texts)
    assert len(texts) == 16
    assert_same(torch, model, minilm, inputs)


@pytest.mark.parametrize(
    ("config", "normalizer"),
    [
        ({"do_lower_case": True}, {}),
        ({"do_lower_case": False}, {"lowercase": False}),
        ({"do_lower_case": False}, {}),
        ({"do_lower_case": True, "strip_accents": False}, {"strip_accents": None}),
        ({"do_lower_case": True, "tokenize_chinese_chars": False}, {}),
        ({"do_lower_case": True, "tokenizer_class": "PreTrainedTokenizerFast"}, {"lowercase": False}),
    ],
)
@pytest.mark.filterwarnings("ignore:.*Following the first")
def test_tokenizer_settings_are_transformers(transformers, checkpoint, huggingface, config, normalizer):
    """Which file decides, and on what."""
    values = huggingface.tokenizer_json()
    values["normalizer"] |= normalizer
    huggingface.write_json(checkpoint / "tokenizer.json", values)
    huggingface.write_json(checkpoint / "tokenizer_config.json", config)
    theirs = json.loads(transformers.AutoTokenizer.from_pretrained(checkpoint).backend_tokenizer.to_str())["normalizer"]
    ours = load_tokenizer(checkpoint)
    assert (ours.lowercase, ours.split_chinese) == (theirs["lowercase"], theirs["handle_chinese_chars"])
    assert ours.strip_accents == theirs["strip_accents"]


def test_without_tensorflow(torch, minilm):
    """Keras on torch, TensorFlow hidden: the reader and the backbone run, and give the reference's numbers."""
    program = """
        import sys
        sys.modules["tensorflow"] = sys.modules["tensorflow_text"] = None
        import keras, numpy as np
        from keras_bert_layers import load_backbone
        assert keras.backend.backend() == "torch"
        with np.load(sys.argv[2]) as file:
            lengths, pooled = file["lengths"][:16].astype(int), file["pooled_output"][:16]
            mask = np.arange(lengths.max()) < lengths[:, None]
            token_ids = np.zeros(mask.shape, "int32")
            token_ids[mask] = file["token_ids"][: mask.sum()]
        inputs = {"token_ids": token_ids, "segment_ids": 0 * token_ids, "padding_mask": mask.astype("int32")}
        outputs = load_backbone(sys.argv[1]).predict(inputs, batch_size=16, verbose=0)
        difference = np.abs(outputs["pooled_output"] - pooled).max()
        assert difference <= 2e-5, difference
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(minilm), str(FOLDER / "minilm_reference.npz")]
    subprocess.run(command, check=True, env={**os.environ, "KERAS_BACKEND": "torch"})
