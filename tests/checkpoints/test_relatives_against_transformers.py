"""The relatives of BERT: transformers' directories read here, and ours read by transformers."""

import base64
import dataclasses
import functools
import json
import logging
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import pytest

from keras_bert_layers import (
    BertBackbone,
    BertPreprocessor,
    BertTokenizer,
    load_backbone,
    load_task,
    save_huggingface,
    save_peft,
)
from keras_bert_layers.checkpoints import load_report
from keras_bert_layers.optimizers import adamw
from keras_bert_layers.preprocessing import AddedToken, BytePairTokenizer, SentencePieceTokenizer
from keras_bert_layers.tasks import zero_shot

byte_pair_models = pytest.importorskip("byte_pair_models", reason="keras-hub brings the tokenizers library")
pytestmark = [
    pytest.mark.peers,
    pytest.mark.filterwarnings("ignore:.*has no pooler"),
    pytest.mark.filterwarnings("ignore:.*dropout=.* is not written"),
]

# pytest -o log_cli=true --log-cli-level=INFO shows the differences themselves.
logger = logging.getLogger(__name__)
# What two float32 implementations may differ by; the project's promise.
TOLERANCE = 2e-5
# The losses of 20 steps of two float32 implementations.
TRAINING_TOLERANCE = 2e-5
RATE = 1e-4
NUM_CHOICES = 2

# Every size is its own, so that a swapped axis does not fit. The usual 0.02 would leave every output near its bias.
BERT_SIZES = {
    "vocab_size": 61,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 50,
    "max_position_embeddings": 19,
    "initializer_range": 0.3,
}
DISTILBERT = {
    "vocab_size": 61,
    "dim": 24,
    "n_layers": 2,
    "n_heads": 4,
    "hidden_dim": 50,
    "max_position_embeddings": 19,
    "initializer_range": 0.3,
    "seq_classif_dropout": 0.35,
}
ELECTRA = {**BERT_SIZES, "type_vocab_size": 3, "layer_norm_eps": 1e-7, "classifier_dropout": 0.25}
ROBERTA = {**ELECTRA, "max_position_embeddings": 21, "type_vocab_size": 1, "layer_norm_eps": 1e-5, "pad_token_id": 1}
MPNET = {**BERT_SIZES, "max_position_embeddings": 21, "layer_norm_eps": 1e-5, "hidden_act": "gelu_new"}
# Rows of 19 tokens, a window of 9: near tokens in blocks 1 and 2.
MODERNBERT = {
    **BERT_SIZES,
    **{"num_hidden_layers": 4, "local_attention": 8, "max_position_embeddings": 40, "pad_token_id": 0},
    **{"bos_token_id": 2, "cls_token_id": 2, "eos_token_id": 3, "sep_token_id": 3, "classifier_dropout": 0.25},
    "intermediate_size": 30,
}
NOMIC_BERT = {**BERT_SIZES, "max_position_embeddings": 40, "classifier_dropout": 0.25, "type_vocab_size": 3}
GTE = {**BERT_SIZES, "max_position_embeddings": 40, "classifier_dropout": 0.25, "pad_token_id": 1}
JINA = {**ROBERTA, "max_position_embeddings": 40, "classifier_dropout": 0.25}
LINEAR = {"rope_type": "linear", "rope_theta": 50.0, "factor": 8 ** (2 / 6)}
# v2's activation, and v1's.
ALBERT = {**BERT_SIZES, "num_hidden_layers": 3, "embedding_size": 10, "type_vocab_size": 3, "layer_norm_eps": 1e-7}
ALBERT |= {"classifier_dropout_prob": 0.25, "hidden_dropout_prob": 0.2}
DEBERTA = {
    **BERT_SIZES,
    **{"relative_attention": True, "position_buckets": 8, "norm_rel_ebd": "layer_norm", "share_att_key": True},
    **{"pos_att_type": "p2c|c2p", "position_biased_input": False, "cls_dropout": 0.25, "layer_norm_eps": 1e-5},
}
# Without buckets, as in DeBERTa-v2, with one of two products, and with segments.
DEBERTA_WIDE = {
    **DEBERTA,
    **{"position_buckets": -1, "max_relative_positions": 12, "norm_rel_ebd": "none", "share_att_key": False},
    **{"position_biased_input": True, "type_vocab_size": 3, "hidden_act": "gelu_new", "pooler_hidden_act": "tanh"},
}
# v2-xlarge's, and one with another function.
DEBERTA_CONVOLUTION = {**DEBERTA, "conv_kernel_size": 3, "conv_act": "gelu", "max_relative_positions": 12}
# Relatives with parts or embeddings of their own.
OWN_PARTS = ["mpnet", "modernbert", "nomic_bert", "gte", "jina_segments", "albert", "deberta_v2"]
# Name -> the beginning of the classes in transformers, the one that we write, and the config.
RELATIVES = {
    "distilbert": ("DistilBert", "DistilBert", DISTILBERT),
    "distilbert_sinusoidal": ("DistilBert", "DistilBert", {**DISTILBERT, "sinusoidal_pos_embds": True}),
    "distilbert_relu": ("DistilBert", "DistilBert", {**DISTILBERT, "activation": "relu"}),
    "electra": ("Electra", "Electra", {**ELECTRA, "embedding_size": 10, "summary_last_dropout": 0.15}),
    "electra_wide": ("Electra", "Electra", {**ELECTRA, "embedding_size": 24, "hidden_act": "gelu_new"}),
    "xlm_roberta": ("XLMRoberta", "XLMRoberta", ROBERTA),
    "xlm_roberta_segments": (
        "XLMRoberta",
        "XLMRoberta",
        {**ROBERTA, "type_vocab_size": 3, "hidden_act": "relu", "pad_token_id": 0},
    ),
    "camembert": ("Camembert", "XLMRoberta", ROBERTA),
    "roberta": ("Roberta", "XLMRoberta", ROBERTA),
    "mpnet": ("MPNet", "MPNet", MPNET),
    "modernbert": ("ModernBert", "ModernBert", MODERNBERT),
    "nomic_bert": ("NomicBert", "NomicBert", NOMIC_BERT),
    "nomic_bert_gelu": (
        "NomicBert",
        "NomicBert",
        {
            **NOMIC_BERT,
            "hidden_act": "gelu",
            "layer_norm_eps": 1e-5,
            "rope_parameters": {"rope_type": "default", "rope_theta": 50.0},
        },
    ),
    "gte": ("Gte", "Gte", {**GTE, "type_vocab_size": 3}),
    "gte_linear": ("Gte", "Gte", {**GTE, "type_vocab_size": 0, "hidden_act": "silu", "rope_parameters": LINEAR}),
    "jina": ("JinaEmbeddingsV3", "JinaEmbeddingsV3", JINA),
    "jina_segments": (
        "JinaEmbeddingsV3",
        "JinaEmbeddingsV3",
        {**JINA, "type_vocab_size": 3, "hidden_act": "relu", "rope_parameters": {**LINEAR, "rope_type": "default"}},
    ),
    "albert": ("Albert", "Albert", ALBERT),
    "albert_v1": ("Albert", "Albert", {**ALBERT, "hidden_act": "gelu", "attention_probs_dropout_prob": 0.3}),
    "deberta_v2": ("DebertaV2", "DebertaV2", DEBERTA),
    "deberta_v2_wide": ("DebertaV2", "DebertaV2", DEBERTA_WIDE),
    "deberta_v2_c2p": ("DebertaV2", "DebertaV2", {**DEBERTA_WIDE, "pos_att_type": ["c2p"], "share_att_key": True}),
    "deberta_v2_p2c": ("DebertaV2", "DebertaV2", {**DEBERTA, "pos_att_type": ["p2c"], "share_att_key": False}),
    "deberta_v2_none": ("DebertaV2", "DebertaV2", {**DEBERTA, "pos_att_type": []}),
    "deberta_v2_convolution": ("DebertaV2", "DebertaV2", DEBERTA_CONVOLUTION),
    "deberta_v2_wide_convolution": ("DebertaV2", "DebertaV2", {**DEBERTA_WIDE, "conv_kernel_size": 5}),
    "deberta_v2_narrow": ("DebertaV2", "DebertaV2", {**DEBERTA_WIDE, "embedding_size": 10}),
    "deberta_v2_head": ("DebertaV2", "DebertaV2", {**DEBERTA, "legacy": False}),
    "modernbert_mean": (
        "ModernBert",
        "ModernBert",
        {**MODERNBERT, "classifier_pooling": "mean", "hidden_activation": "silu", "global_attn_every_n_layers": 2},
    ),
}
TASKS = {
    "Model": None,
    "ForSequenceClassification": "classifier",
    "ForTokenClassification": "token_classifier",
    "ForQuestionAnswering": "question_answerer",
    "ForMultipleChoice": "multiple_choice",
    "ForMaskedLM": "masked_lm",
}
# All heads of five; of the others, the heads that read what they change.
CASES = [
    *(
        (name, head)
        for name in ("distilbert", "electra", "xlm_roberta", "mpnet", "modernbert", "albert")
        for head in TASKS
    ),
    *((name, head) for name in ("nomic_bert", "gte") for head in TASKS if head[3:4] not in "QM" or "Masked" in head),
    *(("jina", head) for head in TASKS if "Choice" not in head),
    *(("jina_segments", head) for head in ("Model", "ForMaskedLM")),
    *(("gte_linear", head) for head in ("Model", "ForMaskedLM")),
    *((name, head) for name in ("deberta_v2", "deberta_v2_wide") for head in TASKS),
    *((f"deberta_v2_{kind}", "Model") for kind in ("c2p", "p2c", "none", "convolution", "wide_convolution")),
    *(("deberta_v2_convolution", f"For{head}") for head in ("SequenceClassification", "MaskedLM")),
    *(("deberta_v2_narrow", head) for head in ("Model", "ForQuestionAnswering", "ForMaskedLM")),
    *(("nomic_bert_gelu", head) for head in ("Model", "ForMaskedLM")),
    *(("albert_v1", head) for head in ("Model", "ForMaskedLM")),
    *(("electra_wide", head) for head in ("Model", "ForSequenceClassification", "ForMaskedLM")),
    *(("xlm_roberta_segments", head) for head in ("Model", "ForMaskedLM", "ForSequenceClassification")),
    *((name, "Model") for name in ("distilbert_sinusoidal", "distilbert_relu", "camembert", "roberta")),
    *(("modernbert_mean", head) for head in ("ForSequenceClassification", "ForMultipleChoice", "ForMaskedLM")),
    *(("distilbert_relu", "ForMaskedLM"), ("camembert", "ForSequenceClassification"), ("roberta", "ForMaskedLM")),
]


@pytest.fixture(scope="module")
def inputs():
    """A padded batch and a row of one token; the id of padding stands in a text too, as if a user had written it."""
    rng = np.random.default_rng(4)
    mask = np.arange(19) < np.array([[19], [7], [1], [12]])
    return {
        "token_ids": rng.integers(2, 61, mask.shape),
        "segment_ids": rng.integers(0, 3, mask.shape) * mask,
        "padding_mask": mask,
    }


def batch_for(config, inputs):
    """The inputs with the padding of a config, and with its segments."""
    mask = inputs["padding_mask"]
    token_ids = np.where(mask, inputs["token_ids"], config.pad_token_id)
    token_ids[3, 4] = config.pad_token_id
    segment_ids = inputs["segment_ids"]
    if getattr(config, "type_vocab_size", 3) == 1 and not any(
        "Question" in name for name in config.architectures or ()
    ):
        segment_ids = 0 * segment_ids
    return {
        name: value.astype("int32")
        for name, value in {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": mask}.items()
    }


def randomised(torch, model):
    """Gives norms and biases numbers of their own too: fresh ones are 1 and 0 and hide what is swapped."""
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.copy_(torch.randn_like(parameter) * 0.3 + parameter)
    return model.eval()


def their_tensors(torch, model, batch):
    names = {"token_ids": "input_ids", "segment_ids": "token_type_ids", "padding_mask": "attention_mask"}
    tensors = {theirs: torch.tensor(batch[ours]) for ours, theirs in names.items()}
    if getattr(model.config, "type_vocab_size", 1) == 1:  # a question answerer finds the context by segment 1
        del tensors["token_type_ids"]
    if type(model).__name__.endswith("MultipleChoice"):
        tensors = {name: tensor.reshape(-1, NUM_CHOICES, tensor.shape[-1]) for name, tensor in tensors.items()}
    return tensors


def their_outputs(torch, model, batch):
    with torch.no_grad():
        return {name: value.numpy() for name, value in model(**their_tensors(torch, model, batch)).items()}


def our_outputs(head, model, batch):
    if head == "ForMultipleChoice":
        shape = (-1, NUM_CHOICES, batch["token_ids"].shape[-1])
        return {"logits": model.predict({name: ids.reshape(shape) for name, ids in batch.items()}, verbose=0)}
    if head == "ForMaskedLM":
        positions = np.tile(np.arange(19, dtype="int32"), (4, 1))
        return {"logits": model.predict({**batch, "mask_positions": positions}, verbose=0)}
    outputs = model.predict(batch, verbose=0)
    if head == "Model":
        return {"last_hidden_state": outputs["sequence_output"], "pooler_output": outputs["pooled_output"]}
    return outputs if head == "ForQuestionAnswering" else {"logits": outputs}


def assert_same(ours, theirs, batch):
    """Equal at all real positions; of spans, where an answer may stand."""
    real = batch["padding_mask"].astype(bool)
    differences = {}
    for name in ours.keys() & theirs.keys():
        mine, yours = ours[name], theirs[name]
        where = real & (mine > -1e4) if "_logits" in name else real if mine.ndim == 3 else np.ones(mine.shape, bool)
        assert where.any()
        differences[name] = float(np.abs(mine - yours)[where].max())
    logger.info("largest differences: %s", differences)
    assert differences
    assert max(differences.values()) <= TOLERANCE, differences


def make_theirs(torch, transformers, name, head):
    beginning, _, values = RELATIVES[name]
    labels = {"num_labels": 3} if head in ("ForSequenceClassification",) else {}
    if head == "ForTokenClassification":
        labels = {"id2label": {0: "O", 1: "B-place", 2: "I-place"}}
    config = getattr(transformers, f"{beginning}Config")(**values, **labels)
    torch.manual_seed(3)
    return randomised(torch, getattr(transformers, beginning + head)(config))


@pytest.mark.parametrize(("name", "head"), CASES)
def test_both_ways(torch, transformers, inputs, tmp_path, name, head):
    model = make_theirs(torch, transformers, name, head)
    model.save_pretrained(tmp_path / "theirs")
    batch = batch_for(model.config, inputs)
    expected = their_outputs(torch, model, batch)
    ours = load_backbone(tmp_path / "theirs") if head == "Model" else load_task(tmp_path / "theirs", preprocessor=None)
    assert_same(our_outputs(head, ours, batch), expected, batch)

    save_huggingface(ours, tmp_path / "ours")
    reader = getattr(transformers, RELATIVES[name][1] + head)
    again, loading = reader.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(loading.values()), loading
    assert type(transformers.AutoConfig.from_pretrained(tmp_path / "ours")) is type(again.config)
    before, after = model.state_dict(), again.state_dict()
    assert before.keys() == after.keys()
    assert [key for key, value in before.items() if not torch.equal(value, after[key])] == []
    assert_same(their_outputs(torch, again.eval(), batch), expected, batch)
    read_again = json.loads((tmp_path / "ours" / "config.json").read_text())
    for key in (
        "seq_classif_dropout",
        "summary_last_dropout",
        "classifier_dropout",
        "classifier_dropout_prob",
        "cls_dropout",
        "pad_token_id",
    ):
        if key in read_again:
            assert read_again[key] == getattr(model.config, key)


def tokenizer_of(our_models, name):
    """The tokenizer of a relative that has another one than BERT's."""
    if name == "modernbert":
        return BytePairTokenizer(**byte_pair_models.modern())
    if name == "roberta":
        return BytePairTokenizer(*byte_pair_models.train(), stripping_tokens=["<mask>"])
    if name in ("nomic_bert", "gte", "jina_segments"):
        return BertTokenizer(our_models.VOCABULARY, reference="huggingface")
    if name == "albert":
        return albert_tokenizer()
    if name.startswith("deberta_v2"):
        return deberta_tokenizer()
    special = {"start": "<s>", "pad": "<pad>", "separator": "</s>", "unknown": "[UNK]", "mask": "<mask>"}
    return BertTokenizer(
        [*list(special.values())[:4], *our_models.VOCABULARY[5:], "<mask>"],
        special_tokens=special,
        added_tokens=[AddedToken("<mask>", lstrip=True, normalized=False, special=True)],
        num_pair_separators=2,
        reference="huggingface",
    )


@functools.cache
def albert_tokenizer():
    models = pytest.importorskip("sentence_piece_models", reason="the extra `test` brings sentencepiece")
    proto = models.train("unigram", "nmt_nfkc", 200, **models.ALBERT)
    return SentencePieceTokenizer(
        [piece.piece for piece in proto.pieces],
        [piece.score for piece in proto.pieces],
        character_map=base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode(),
        special_tokens=["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"],
        **{"start_token": "[CLS]", "separator_token": "[SEP]", "mask_token": "[MASK]"},
        **{"normalizer": "quotes_nfkd_lowercase", "num_pair_separators": 1},
    )


@functools.cache
def deberta_tokenizer():
    models = pytest.importorskip("sentence_piece_models")
    pieces = models.train("unigram", "nmt_nfkc", 300, **models.DEBERTA).pieces
    return SentencePieceTokenizer(
        [*(piece.piece for piece in pieces), "[MASK]"],
        [*(piece.score for piece in pieces), None],
        normalizer="nfc",
        num_pair_separators=1,
        **{"start_token": "[CLS]", "separator_token": "[SEP]", "pad_token": "[PAD]"},
        **{"unknown_token": "[UNK]", "mask_token": "[MASK]"},
    )


def their_encoder(transformers, name, tokenizer, directory):
    """A directory with an encoder of random weights that has the tokens of a tokenizer."""
    beginning, _, values = RELATIVES[name]
    sizes = {"vocab_size": tokenizer.vocabulary_size(), "pad_token_id": tokenizer.pad_id}
    config = getattr(transformers, f"{beginning}Config")(**{**values, **sizes})
    getattr(transformers, f"{beginning}Model")(config).save_pretrained(directory)
    return directory


def make_ours(our_models, name, kind):
    """A small random model of a relative with its tokenizer, of one of the kinds of `our_models`."""
    if name in ("roberta", *OWN_PARTS):
        transformers, tokenizer = pytest.importorskip("transformers"), tokenizer_of(our_models, name)
        with tempfile.TemporaryDirectory() as directory:
            backbone = load_backbone(their_encoder(transformers, name, tokenizer, directory))
        preprocessor = BertPreprocessor(tokenizer, our_models.MAX_LENGTH)
        return our_models.randomised(our_models.MAKERS[kind](backbone, preprocessor))
    changes = {
        "distilbert": {"num_segments": 0, "pooler_activation": "relu", "layer_norm_epsilon": 1e-12},
        "electra": {"embedding_dim": 6, "pooler_activation": "gelu_erf", "activation": "gelu_erf"},
        "xlm_roberta": {"position_offset": 1},
    }
    config = dataclasses.replace(our_models.CONFIG, **changes[name])
    return our_models.randomised(our_models.MAKERS[kind](BertBackbone(config), our_models.preprocessor()))


@pytest.mark.parametrize("kind", ["classifier", "cross_encoder"])
@pytest.mark.parametrize("name", ["distilbert", "electra", "xlm_roberta", "roberta", *OWN_PARTS])
def test_texts_and_pairs(torch, transformers, our_models, tmp_path, name, kind):
    task = make_ours(our_models, name, kind)
    directory = save_huggingface(task, tmp_path / "ours")
    texts = our_models.TEXTS if kind == "classifier" else (our_models.TEXTS, our_models.TEXTS[::-1])
    pair = [texts] if kind == "classifier" else [list(part) for part in texts]
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(directory)
    batch = tokenizer(*pair, padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        theirs = model.eval()(**batch).logits.numpy()
    np.testing.assert_allclose(task.predict(texts, verbose=0), theirs, rtol=0, atol=TOLERANCE)
    if name == "modernbert":
        stated = {role: getattr(model.config, f"{role}_token_id") for role in ("cls", "sep", "pad")}
        assert stated == {role: getattr(tokenizer, f"{role}_token_id") for role in stated}
    again = load_task(directory)
    np.testing.assert_array_equal(again.predict(texts, verbose=0), task.predict(texts, verbose=0))


@pytest.mark.parametrize("name", ["distilbert", "electra", "xlm_roberta", "roberta", *OWN_PARTS])
def test_sentence_encoders(our_models, tmp_path, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of another project
        peer = pytest.importorskip("sentence_transformers")
        task = make_ours(our_models, name, "sentence_encoder")
        model = peer.SentenceTransformer(str(save_huggingface(task, tmp_path / "x")), device="cpu")
        theirs = model.encode(our_models.TEXTS)
        model.save_pretrained(str(tmp_path / "theirs"))
    np.testing.assert_allclose(task.predict(our_models.TEXTS, verbose=0), theirs, rtol=0, atol=TOLERANCE)
    again = load_task(tmp_path / "theirs")
    np.testing.assert_allclose(again.predict(our_models.TEXTS, verbose=0), theirs, rtol=0, atol=TOLERANCE)


SERVE = """
import sys, numpy as np, tensorflow as tf, tensorflow_text
assert "keras_bert_layers" not in sys.modules
texts = tf.constant(np.load(sys.argv[1]).tolist())
for folder in sys.argv[2:]:
    outputs = tf.saved_model.load(folder).signatures["serving_default"](text=texts)
    np.save(folder + ".npy", outputs["probabilities"].numpy())
"""


@pytest.mark.slow
def test_saved_models_in_a_fresh_process(torch, transformers, our_models, tmp_path):
    """Strings in, transformers' probabilities out, in a process without Keras and this package."""
    names = ["distilbert", "electra", "roberta", *OWN_PARTS]
    for name in names:
        directory = save_huggingface(make_ours(our_models, name, "classifier"), tmp_path / name)
        load_task(directory).export(tmp_path / "served" / name)
    np.save(tmp_path / "texts.npy", our_models.TEXTS)
    files = [str(tmp_path / "texts.npy"), *(str(tmp_path / "served" / name) for name in names)]
    subprocess.run(
        [sys.executable, "-c", SERVE, *files], check=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": ""}
    )
    for name in names:
        tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / name)
        model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / name)
        batch = tokenizer(our_models.TEXTS, padding=True, truncation=True, return_tensors="pt")
        with torch.no_grad():
            logits = model.eval()(**batch).logits
        served = np.load(tmp_path / "served" / f"{name}.npy")
        np.testing.assert_allclose(
            served, torch.softmax(logits, -1).numpy(), rtol=0, atol=TOLERANCE, err_msg=f"of {name}"
        )


@pytest.mark.parametrize("name", ["roberta", *OWN_PARTS, "deberta_v2_p2c"])
def test_lora_in_peft(torch, transformers, our_models, tmp_path, monkeypatch, name):
    """PEFT reads what LoRA learned, and so does `load_task`."""
    peft = pytest.importorskip("peft")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    base = their_encoder(transformers, name, tokenizer_of(our_models, name), tmp_path / "base")
    backbone = load_backbone(base)
    backbone.enable_lora(3, 5)
    task = our_models.MAKERS["classifier"](backbone, None)
    rng = np.random.default_rng(8)
    for weight in task.trainable_weights:
        weight.assign(rng.normal(0, 0.2, weight.shape))
    directory = save_peft(task, tmp_path / "adapter", base=base)
    ids = {"token_ids": rng.integers(5, 17, (2, 11)), "padding_mask": np.arange(11) < [[11], [6]]}
    ids = {name: value.astype("int32") for name, value in ids.items()}
    expected = task.predict({**ids, "segment_ids": 0 * ids["token_ids"]}, verbose=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*is_gradient_checkpointing", FutureWarning)  # of PEFT
        model = peft.AutoPeftModelForSequenceClassification.from_pretrained(directory, num_labels=3)
    with torch.no_grad():
        theirs = model.eval()(*map(torch.tensor, (ids["token_ids"], ids["padding_mask"]))).logits.numpy()
    np.testing.assert_allclose(expected, theirs, rtol=0, atol=TOLERANCE)
    for file in directory.iterdir():
        (base / file.name).write_bytes(file.read_bytes())
    again = load_task(base, task="classifier", preprocessor=None)
    np.testing.assert_allclose(
        again.predict({**ids, "segment_ids": 0 * ids["token_ids"]}, verbose=0), expected, rtol=0, atol=1e-5
    )


def their_losses(torch, model, batches):
    groups = {True: [], False: []}
    for name, parameter in model.named_parameters():
        groups["bias" in name or "norm" in name.lower()].append(parameter)
    decayed, others = ({"params": groups[kind], "weight_decay": decay} for kind, decay in ((False, 0.01), (True, 0.0)))
    optimizer = torch.optim.AdamW([decayed, others], lr=RATE, eps=1e-8)
    losses = []
    for batch in batches:
        labels = torch.tensor(batch["token_ids"][:, 0] % 3).long()
        loss = torch.nn.functional.cross_entropy(model(**their_tensors(torch, model, batch)).logits, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("name", ["roberta", "modernbert_mean", *OWN_PARTS, "deberta_v2_convolution"])
def test_twenty_steps_of_training(torch, transformers, inputs, tmp_path, monkeypatch, name):
    """Without dropout, the losses of fine-tuning are the same numbers."""
    values = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "classifier_dropout": 0.0}
    beginning, _, sizes = RELATIVES[name]
    values["num_hidden_layers"] = min(sizes["num_hidden_layers"], 3)  # of ModernBERT's, one or two near tokens only
    if name == "mpnet":
        del values["classifier_dropout"]
    if name == "albert":
        values["classifier_dropout_prob"] = values.pop("classifier_dropout")
    if name.startswith("deberta_v2"):
        values["cls_dropout"] = values.pop("classifier_dropout")
    monkeypatch.setitem(RELATIVES, name, (beginning, beginning, {**sizes, **values, "initializer_range": 0.1}))
    model = make_theirs(torch, transformers, name, "ForSequenceClassification")
    model.save_pretrained(tmp_path)
    task = load_task(tmp_path, preprocessor=None)
    batches = []
    for step in range(20):
        batch = batch_for(model.config, {**inputs, "token_ids": (inputs["token_ids"] + step) % 58 + 3})
        batch["token_ids"][3, 4] = 5  # torch does not train the row of the padding
        batches.append(batch)
    task.compile(adamw(RATE), metrics=[])
    ours = [task.train_on_batch(batch, batch["token_ids"][:, 0] % 3) for batch in batches]
    theirs = their_losses(torch, model.train(), batches)
    np.testing.assert_allclose(np.array(ours).reshape(20, -1)[:, 0], theirs, rtol=0, atol=TRAINING_TOLERANCE)


def test_former_configs_of_gte(torch, transformers, inputs, tmp_path):
    """The code that was beside GTE's files made its angles slower by `factor ** (2 / width)`, and its base larger."""
    model = make_theirs(torch, transformers, "gte", "Model")
    model.save_pretrained(tmp_path / "former")
    path = tmp_path / "former" / "config.json"
    values = {**json.loads(path.read_text()), "model_type": "new", "architectures": ["NewModel"], "rope_theta": 50.0}
    del values["rope_parameters"]
    path.write_text(json.dumps({**values, "rope_scaling": {"type": "ntk", "factor": 8.0}}))
    exponents = torch.arange(0, 6, 2).float() / 6
    model.rotary_emb.inv_freq = 1 / (50 * 8.0) ** exponents / 8 ** (2 / 6)
    batch = batch_for(model.config, inputs)
    ours, expected = load_backbone(tmp_path / "former"), their_outputs(torch, model, batch)
    assert_same({"last_hidden_state": ours.predict(batch, verbose=0)["sequence_output"]}, expected, batch)

    # transformers has no such kind of positions, but "linear" is the same.
    path.write_text(json.dumps({**json.loads(path.read_text()), "model_type": "gte"}))
    with pytest.raises(KeyError, match="ntk"):
        transformers.AutoModel.from_pretrained(tmp_path / "former")
    again = transformers.AutoModel.from_pretrained(save_huggingface(ours, tmp_path / "ours")).eval()
    assert_same({"last_hidden_state": their_outputs(torch, again, batch)["last_hidden_state"]}, expected, batch)


def test_distances_of_mpnet(transformers):
    """Each distance has the number that it has in transformers, also the long ones that share one."""
    from keras_bert_layers.layers import RelativePositionBias

    distances = np.arange(-600, 601)
    torch = pytest.importorskip("torch")
    theirs = transformers.models.mpnet.modeling_mpnet.MPNetEncoder.relative_position_bucket(torch.tensor(distances))
    np.testing.assert_array_equal(RelativePositionBias().buckets(distances), theirs)


def test_zero_shot_and_attributions_of_deberta(torch, transformers, our_models, tmp_path):
    """Its NLI classifiers do what they are mostly loaded for."""
    names = ["entailment", "neutral", "contradiction"]
    task = make_ours(our_models, "deberta_v2", "classifier")
    labels = {"id2label": dict(enumerate(names)), "label2id": {name: index for index, name in enumerate(names)}}
    directory = save_huggingface(task, tmp_path / "nli")
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps({**config, **labels}))
    task = load_task(directory)
    pipeline = transformers.pipeline("zero-shot-classification", str(directory))
    texts, candidates = ["a b", "c"], ["a", "b", "d"]  # rows hold 11 pieces
    for several in (False, True):
        found = zero_shot(task, texts, candidates, "{}", multi_label=several)
        answers = pipeline(texts, candidates, hypothesis_template="{}", multi_label=several)
        for row, answer in zip(found, answers, strict=True):
            expected = dict(zip(answer["labels"], answer["scores"], strict=True))
            np.testing.assert_allclose(row, [expected[name] for name in candidates], rtol=0, atol=TOLERANCE)
    explained = task.attribute((["a b"], ["c"]), "entailment")[0]
    assert list(explained.words) == ["a", "b", "c"]
    assert abs(explained.error) < 1e-3
    assert np.abs(explained.scores).max() > 1e-3


def test_rows_of_deberta(transformers):
    """Each distance has the vector that it has in transformers, in sizes where rounding may differ."""
    from keras_bert_layers.layers import RelativeVectors

    torch = pytest.importorskip("torch")
    theirs = transformers.models.deberta_v2.modeling_deberta_v2.make_log_bucket_position
    distances = np.arange(-1100, 1101)
    for buckets, longest in ((256, 512), (8, 19), (7, 40), (2, 3), (100, 1000), (511, 513)):
        expected = torch.clamp(theirs(torch.tensor(distances), buckets, longest).long() + buckets, 0, 2 * buckets - 1)
        found = RelativeVectors(num_buckets=buckets, max_distance=longest).rows(distances)
        np.testing.assert_array_equal(found, expected.numpy())


@pytest.mark.parametrize("states_it", [True, False])
def test_the_other_masked_language_model_of_deberta(torch, transformers, inputs, tmp_path, states_it):
    """The released files have its head, and no key for it: transformers makes a random one of the other kind."""
    model = make_theirs(torch, transformers, "deberta_v2_head", "ForMaskedLM")
    model.save_pretrained(tmp_path / "theirs")
    config = json.loads((tmp_path / "theirs" / "config.json").read_text())
    if not states_it:
        del config["legacy"], config["architectures"]
        (tmp_path / "theirs" / "config.json").write_text(json.dumps(config))
        _, loading = transformers.DebertaV2ForMaskedLM.from_pretrained(tmp_path / "theirs", output_loading_info=True)
        assert {"lm_predictions.lm_head.bias"} <= set(loading["unexpected_keys"])
        assert {"cls.predictions.bias"} <= set(loading["missing_keys"])
    batch = batch_for(model.config, inputs)
    expected = their_outputs(torch, model, batch)
    ours = load_task(tmp_path / "theirs", preprocessor=None)
    assert_same(our_outputs("ForMaskedLM", ours, batch), expected, batch)
    save_huggingface(ours, tmp_path / "ours")
    again = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "ours").eval()
    assert_same(their_outputs(torch, again, batch), expected, batch)


def test_generators_and_discriminators(torch, transformers, inputs, tmp_path):
    """The discriminator is an encoder; its own head is left out by name."""
    config = transformers.ElectraConfig(**ELECTRA, embedding_size=10)
    model = randomised(torch, transformers.ElectraForPreTraining(config))
    model.save_pretrained(tmp_path)
    batch = batch_for(config, inputs)
    ours = load_backbone(tmp_path)
    expected = their_outputs(torch, model.electra, batch)
    assert_same({"last_hidden_state": ours.predict(batch, verbose=0)["sequence_output"]}, expected, batch)
    assert set(load_report(ours).ignored.values()) == {"the head that finds replaced tokens"}


def test_the_sentence_order_head(torch, transformers, inputs, tmp_path):
    """Both heads of ALBERT's pretraining, and one step of it: 0 is in order on both sides."""
    model = randomised(torch, transformers.AlbertForPreTraining(transformers.AlbertConfig(**ALBERT)))
    model.save_pretrained(tmp_path / "theirs")
    batch = batch_for(model.config, inputs)
    expected = their_outputs(torch, model, batch)
    ours = load_task(tmp_path / "theirs", preprocessor=None)
    batch["mask_positions"] = np.tile(np.arange(19, dtype="int32"), (4, 1))
    found = ours.predict(batch, verbose=0)
    real = batch["padding_mask"].astype(bool)
    for mine, theirs in ((found["masked_lm"][real], expected["prediction_logits"][real]),
                         (found["next_sentence"], expected["sop_logits"])):  # fmt: skip
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=TOLERANCE)
    labels = {"masked_lm": batch["token_ids"], "next_sentence": np.array([0, 1, 1, 0])}
    weights = {"masked_lm": real.astype("float32"), "next_sentence": np.ones(4, "float32")}
    loss = ours.test_on_batch(batch, labels, sample_weight=weights, return_dict=True)["loss"]
    tokens = torch.tensor(np.where(real, batch["token_ids"], -100)).long()
    given = their_tensors(torch, model, batch)
    theirs = model(**given, labels=tokens, sentence_order_label=torch.tensor([0, 1, 1, 0])).loss
    assert float(loss) == pytest.approx(theirs.item(), abs=TRAINING_TOLERANCE)
    save_huggingface(ours, tmp_path / "ours")
    again, loading = transformers.AlbertForPreTraining.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(loading.values()), loading
    assert not [key for key, value in model.state_dict().items() if not torch.equal(value, again.state_dict()[key])]


def test_a_pooler_beside_a_classification_head(torch, transformers, inputs, tmp_path):
    """Old files have both; transformers reads the head's own layer, and so do we."""
    model = make_theirs(torch, transformers, "xlm_roberta", "ForSequenceClassification")
    model.config.save_pretrained(tmp_path)
    pooler = {"roberta.pooler.dense.weight": torch.ones(24, 24), "roberta.pooler.dense.bias": torch.ones(24)}
    torch.save({**model.state_dict(), **pooler}, tmp_path / "pytorch_model.bin")
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "architectures": [type(model).__name__]}))
    batch = batch_for(model.config, inputs)
    task = load_task(tmp_path, preprocessor=None)
    assert_same({"logits": task.predict(batch, verbose=0)}, their_outputs(torch, model, batch), batch)
    assert set(load_report(task).ignored) >= pooler.keys()
