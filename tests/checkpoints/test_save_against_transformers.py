"""Directories of `save_huggingface` loaded by transformers, written by it again, and read here."""

import contextlib
import csv
import gzip
import json
import logging
import warnings

import keras
import numpy as np
import pytest

from keras_bert_layers import load_backbone, load_preprocessor, load_task, load_tokenizer, save_huggingface

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore:.*has no pooler")]

# pytest -o log_cli=true --log-cli-level=INFO shows the differences themselves.
logger = logging.getLogger(__name__)
# What two float32 implementations may differ by; the project's promise.
TOLERANCE = 2e-5

CLASSES = {
    "backbone": "BertModel",
    "classifier": "BertForSequenceClassification",
    "unnamed_classifier": "BertForSequenceClassification",
    "multi_label_classifier": "BertForSequenceClassification",
    "regression": "BertForSequenceClassification",
    "token_classifier": "BertForTokenClassification",
    "question_answerer": "BertForQuestionAnswering",
    "multiple_choice": "BertForMultipleChoice",
    "masked_lm": "BertForMaskedLM",
    "pretrainer": "BertForPreTraining",
    "sentence_encoder": "BertModel",
    "dual_encoder": "BertModel",
    "cross_encoder": "BertForSequenceClassification",
}
NUM_CHOICES = 2


@pytest.fixture(scope="module")
def inputs():
    """A padded batch with four segments and a row of one token."""
    rng = np.random.default_rng(4)
    mask = np.arange(17) < np.array([[17], [7], [1], [12]])
    token_ids = rng.integers(0, 23, mask.shape) * mask
    segment_ids = rng.integers(0, 4, mask.shape) * mask
    return {
        name: value.astype("int32")
        for name, value in {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": mask}.items()
    }


def their_outputs(torch, model, inputs):
    """What transformers gives, by its own names; two rows are one question with two choices where that is asked."""
    names = {"token_ids": "input_ids", "segment_ids": "token_type_ids", "padding_mask": "attention_mask"}
    batch = {theirs: torch.tensor(inputs[ours]) for ours, theirs in names.items()}
    if type(model).__name__ == "BertForMultipleChoice":
        batch = {name: tensor.reshape(-1, NUM_CHOICES, tensor.shape[-1]) for name, tensor in batch.items()}
    with torch.no_grad():
        return {name: value.numpy() for name, value in model.eval()(**batch).items()}


def our_outputs(kind, model, inputs):
    """What our model gives, by transformers' names."""
    if kind == "multiple_choice":
        shape = (-1, NUM_CHOICES, inputs["token_ids"].shape[-1])
        return {"logits": model.predict({name: ids.reshape(shape) for name, ids in inputs.items()}, verbose=0)}
    if kind in ("masked_lm", "pretrainer"):
        length = inputs["token_ids"].shape[1]
        positions = np.tile(np.arange(length, dtype="int32"), (len(inputs["token_ids"]), 1))
        outputs = model.predict({**inputs, "mask_positions": positions}, verbose=0)
        if kind == "masked_lm":
            return {"logits": outputs}
        return {"prediction_logits": outputs["masked_lm"], "seq_relationship_logits": outputs["next_sentence"]}
    if CLASSES[kind] == "BertModel":
        backbone = model if kind == "backbone" else model.backbone
        outputs = backbone.predict(inputs, verbose=0)
        return {"last_hidden_state": outputs["sequence_output"], "pooler_output": outputs["pooled_output"]}
    outputs = model.predict(inputs, verbose=0)
    return outputs if kind == "question_answerer" else {"logits": outputs}


def assert_equal_outputs(kind, ours, theirs, inputs):
    """Equal at all real positions; of spans, where an answer may stand."""
    real = inputs["padding_mask"].astype(bool)
    differences = {}
    for name, mine in ours.items():
        yours = theirs[name]
        assert mine.shape == yours.shape, name
        if mine.ndim == 3 or name in ("start_logits", "end_logits"):
            where = real & (mine > -1e4) if mine.ndim == 2 else real
        else:
            where = np.ones(mine.shape, bool)
        assert where.any()
        differences[name] = float(np.abs(mine - yours)[where].max())
    logger.info("%s, largest differences: %s", kind, differences)
    assert max(differences.values()) <= TOLERANCE, differences


@pytest.mark.parametrize("kind", CLASSES)
def test_both_ways(torch, transformers, our_models, inputs, tmp_path, kind):
    task = our_models.make(kind)
    directory = save_huggingface(task, tmp_path / "ours")
    auto = {"BertModel": "AutoModel", "BertForPreTraining": "AutoModelForPreTraining"}.get(CLASSES[kind])
    reader = getattr(transformers, auto or CLASSES[kind])
    model, loading = reader.from_pretrained(directory, output_loading_info=True)
    assert type(model).__name__ == CLASSES[kind]
    assert not any(loading.values()), loading
    assert_equal_outputs(kind, our_outputs(kind, task, inputs), their_outputs(torch, model, inputs), inputs)

    # Other numbers, written by transformers, read here.
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3)
    model.save_pretrained(tmp_path / "theirs")
    if kind == "backbone":
        again = load_backbone(tmp_path / "theirs")
    else:
        name = {
            "dual_encoder": "dual_encoder",
            "sentence_encoder": "sentence_encoder",
            "cross_encoder": "cross_encoder",
        }
        again = load_task(tmp_path / "theirs", name.get(kind), preprocessor=None)
        assert type(again) is type(task)
    assert_equal_outputs(kind, our_outputs(kind, again, inputs), their_outputs(torch, model, inputs), inputs)


@pytest.mark.parametrize("kind", CLASSES)
def test_same_files_as_transformers(transformers, our_models, tmp_path, kind):
    """The tensors and the config that `save_pretrained` writes of the model that it has read."""
    safetensors = pytest.importorskip("safetensors.numpy")
    ours = save_huggingface(our_models.make(kind), tmp_path / "ours")
    getattr(transformers, CLASSES[kind]).from_pretrained(ours).save_pretrained(tmp_path / "theirs")
    files = [directory / "model.safetensors" for directory in (ours, tmp_path / "theirs")]
    mine, yours = (safetensors.load_file(file) for file in files)
    assert mine.keys() == yours.keys()
    for name, tensor in mine.items():
        np.testing.assert_array_equal(tensor, yours[name], err_msg=name)
    assert files[0].read_bytes() == files[1].read_bytes()
    mine, yours = (json.loads((file.parent / "config.json").read_text("utf-8")) for file in files)
    # What it adds: its own version, and values that are its defaults.
    defaults = transformers.BertConfig(architectures=[CLASSES[kind]]).to_dict()
    added = {key: value for key, value in yours.items() if key not in mine and key != "transformers_version"}
    assert added.items() <= defaults.items()
    assert {key: yours[key] for key in mine} == mine


@pytest.mark.parametrize(
    "options", [{}, {"lowercase": False}, {"strip_accents": False}, {"split_chinese": False}], ids=str
)
def test_ids_of_the_small_tokenizer(transformers, our_models, tmp_path, options):
    directory = save_huggingface(our_models.make("classifier", **options), tmp_path / "ours")
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    assert tokenizer.model_max_length == our_models.MAX_LENGTH
    ours = load_preprocessor(directory)
    for texts in (our_models.TEXTS, ["É é", "[MASK] good [SEP]", "中中 good中bad"]):
        theirs = tokenizer(texts, padding=True, truncation=True, return_tensors="np")
        mine = ours(texts)
        for name, key in {"token_ids": "input_ids", "padding_mask": "attention_mask"}.items():
            np.testing.assert_array_equal(mine[name], theirs[key])
    pair = tokenizer(["good film"], ["bad night"], return_tensors="np")
    np.testing.assert_array_equal(ours((["good film"], ["bad night"]))["segment_ids"], pair["token_type_ids"])


def test_a_vocabulary_without_mask_gets_no_new_token(transformers, our_models, tmp_path):
    from keras_bert_layers import BertBackbone, BertPreprocessor, BertTokenizer

    vocabulary = [token for token in our_models.VOCABULARY if token != "[MASK]"]
    preprocessor = BertPreprocessor(BertTokenizer(vocabulary, reference="huggingface"))
    directory = save_huggingface(BertBackbone(our_models.CONFIG), tmp_path / "x", preprocessor=preprocessor)
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    assert (len(tokenizer), tokenizer.mask_token) == (len(vocabulary), None)
    assert tokenizer("a good film")["input_ids"] == preprocessor(["a good film"])["token_ids"].numpy()[0].tolist()


def real_texts(shared_data):
    with gzip.open(shared_data / "glue" / "SST-2" / "dev.tsv.gz", "rt", encoding="utf-8") as file:
        sentences = [row["sentence"] for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    with gzip.open(shared_data / "squad" / "v1.1-dev.json.gz", "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    return [
        *sentences[:200],
        *(paragraph["context"] for article in articles for paragraph in article["paragraphs"][:4]),
    ]


@pytest.mark.parametrize("library", ["transformers", "tokenizers"])
def test_ids_of_real_texts(minilm, shared_data, tmp_path, library):
    """All-MiniLM-L6-v2 read, written, and read by transformers: the ids of the first file, on real texts."""
    peer = pytest.importorskip(library)
    directory = save_huggingface(load_task(minilm), tmp_path / "minilm")
    texts = real_texts(shared_data)
    assert len(texts) > 300
    ours = load_tokenizer(minilm).tokenize(texts).to_list()
    if library == "transformers":
        theirs = peer.AutoTokenizer.from_pretrained(directory)(texts, add_special_tokens=False)["input_ids"]
    else:
        tokenizer = peer.Tokenizer.from_file(str(directory / "tokenizer.json"))
        theirs = [encoding.ids for encoding in tokenizer.encode_batch(texts, add_special_tokens=False)]
    assert ours == theirs


def test_minilm_outputs(torch, transformers, minilm, tmp_path):
    directory = save_huggingface(load_task(minilm), tmp_path / "minilm")
    model, loading = transformers.AutoModel.from_pretrained(directory, output_loading_info=True)
    assert not any(loading.values()), loading
    inputs = {name: np.asarray(value) for name, value in load_preprocessor(directory)(["A cat sleeps.", "No"]).items()}
    ours = our_outputs("backbone", load_backbone(minilm), inputs)
    assert_equal_outputs("backbone", ours, their_outputs(torch, model, inputs), inputs)


@contextlib.contextmanager
def foreign_warnings():
    """Warnings of another project, which cannot be fixed here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("kind", ["sentence_encoder", "projected_sentence_encoder", "dual_encoder"])
def test_sentence_transformers(our_models, tmp_path, kind):
    with foreign_warnings():
        peer = pytest.importorskip("sentence_transformers")
        task = our_models.make(kind)
        model = peer.SentenceTransformer(str(save_huggingface(task, tmp_path / "x")), device="cpu")
        theirs = model.encode(our_models.TEXTS)
    assert model.max_seq_length == our_models.MAX_LENGTH
    assert model.similarity_fn_name == ("dot" if kind == "dual_encoder" else "cosine")
    np.testing.assert_allclose(task.predict(our_models.TEXTS, verbose=0), theirs, rtol=0, atol=TOLERANCE)
    if kind != "dual_encoder":
        with foreign_warnings():
            model.save_pretrained(str(tmp_path / "theirs"))
        again = load_task(tmp_path / "theirs")
        np.testing.assert_allclose(again.predict(our_models.TEXTS, verbose=0), theirs, rtol=0, atol=TOLERANCE)


def test_cross_encoder_of_sentence_transformers(our_models, tmp_path):
    queries = ["a good film"] * len(our_models.TEXTS)
    with foreign_warnings():
        peer = pytest.importorskip("sentence_transformers")
        task = our_models.make("cross_encoder")
        model = peer.CrossEncoder(str(save_huggingface(task, tmp_path / "x")), device="cpu")
        theirs = model.predict(list(zip(queries, our_models.TEXTS, strict=True)))
    logits = task.predict((queries, our_models.TEXTS), verbose=0)
    np.testing.assert_allclose(keras.ops.sigmoid(logits)[:, 0], theirs, rtol=0, atol=TOLERANCE)
