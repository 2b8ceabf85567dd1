"""Every task to serve, small with random weights, with requests to its signatures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import keras_bert_layers as kbl
from keras_bert_layers.export.signature import DEFAULT_MAX_BYTES, with_bound
from keras_bert_layers.preprocessing import SpanPreprocessor

SEED = 23
MAX_LENGTH = 37
NUM_TEXTS = 21
# A question answerer refuses questions that leave no room for the context.
MAX_QUESTION_BYTES = 50
QUESTION = b"Who sleeps on the roof?"
TAGS = ["O", "B-place", "I-place", "B-person", "I-person"]
# Heads of random weights answer the same to every text unless they are large.
INITIALIZER_RANGE = 0.3
REAL_TEXTS = Path(__file__).parents[2] / "checkpoints" / "minilm_texts.txt"
# What clients send by mistake; `hostile_texts.py` has what they send on purpose.
ODD_TEXTS = [
    b"",
    b" \t\n ",
    b"zero \x00 byte, broken \xff\xfe bytes \xc3",
    b"[SEP] a [SEP][MASK] film [CLS] [PAD] [UNK] [MASK]" + b" [SEP]" * 30,
    "\N{GRINNING FACE} \u0130stanbul \u00df \ufb01 \u0301\u200d \ue000 \u03a3\u03a3".encode(),
    b"x" * 300,
    b"A long review that goes on about a city, and on. " * 40,
]


def texts() -> np.ndarray:
    """Real sentences in several scripts, every third an odd text."""
    lines = REAL_TEXTS.read_bytes().split(b"\n")
    found = lines[13 : 13 + NUM_TEXTS - len(ODD_TEXTS)]
    for index, text in enumerate(ODD_TEXTS):
        found.insert(3 * index, text)
    return np.array(found, object)


def _one_text(column: np.ndarray) -> dict[str, np.ndarray]:
    return {"text": column}


def _pairs(column: np.ndarray) -> dict[str, np.ndarray]:
    return {"text": column, "text_pair": np.roll(column, 5)}


def _questions(column: np.ndarray) -> dict[str, np.ndarray]:
    short = [text if len(text) < MAX_QUESTION_BYTES else QUESTION for text in np.roll(column, 1)]
    return {"question": np.array(short, object), "context": column}


def _choices(column: np.ndarray) -> dict[str, np.ndarray]:
    choices = np.stack([np.roll(column, shift) for shift in (3, 7, 11)], axis=1)
    choices[1::2, 2] = b""
    return {"prompt": column, "choices": choices}


def _masked(column: np.ndarray) -> dict[str, np.ndarray]:
    return {"text": np.array([b"[MASK] " + text for text in column], object)}


def _masked_pairs(column: np.ndarray) -> dict[str, np.ndarray]:
    return _pairs(_masked(column)["text"])


def _answerer(backbone: Any, preprocessor: Any) -> Any:
    return kbl.BertQuestionAnswerer(backbone, SpanPreprocessor(preprocessor.tokenizer, MAX_LENGTH, stride=8))


NAMES = {"class_names": ["bad", "good", "neither"]}
# Task -> how it is made, and the inputs of `serving_default` from a column of texts.
CASES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[np.ndarray], dict[str, np.ndarray]]]] = {
    "classifier": (lambda b, p: kbl.BertClassifier(b, preprocessor=p, **NAMES), _one_text),
    "pair_classifier": (lambda b, p: kbl.BertClassifier(b, preprocessor=p, pairs=True, **NAMES), _pairs),
    "multi_label": (
        lambda b, p: kbl.BertClassifier(b, preprocessor=p, problem_type="multi_label_classification", **NAMES),
        _one_text,
    ),
    "regressor": (lambda b, p: kbl.BertClassifier(b, preprocessor=p, problem_type="regression"), _one_text),
    "token_classifier": (lambda b, p: kbl.BertTokenClassifier(b, TAGS, preprocessor=p), _one_text),
    "crf_token_classifier": (lambda b, p: kbl.BertTokenClassifier(b, TAGS, crf=True, preprocessor=p), _one_text),
    "question_answerer": (_answerer, _questions),
    "multiple_choice": (lambda b, p: kbl.BertMultipleChoice(b, preprocessor=p), _choices),
    "masked_lm": (lambda b, p: kbl.BertMaskedLM(b, p, top_k=3), _masked),
    "pretrainer": (lambda b, p: kbl.BertPretrainer(b, p, top_k=3), _masked_pairs),
    "sentence_encoder": (lambda b, p: kbl.BertSentenceEncoder(b, preprocessor=p), _one_text),
    "dual_encoder": (lambda b, p: kbl.BertDualEncoder(b, preprocessor=p), _one_text),
    "cross_encoder": (kbl.BertCrossEncoder, _pairs),
}
# Their models give something for every place of `token_ids`.
WITH_AN_OUTPUT_A_TOKEN = {"token_classifier", "crf_token_classifier", "question_answerer"}


class ServedTask:
    """A task with small random weights, its SavedModel, and requests to each of its signatures.

    Args:
        name: a key of `CASES`.
        preprocessor: a `BertPreprocessor` of a real vocabulary.
        folder: where the SavedModel goes.
    """

    def __init__(self, name: str, preprocessor: Any, folder: Path):
        make, self.inputs_from = CASES[name]
        keras.utils.set_random_seed(SEED)
        backbone = kbl.BertBackbone(
            kbl.BertConfig(
                vocabulary_size=preprocessor.tokenizer.vocabulary_size(),
                hidden_dim=21,
                num_layers=2,
                num_heads=3,
                intermediate_dim=35,
                max_sequence_length=41,
                initializer_range=INITIALIZER_RANGE,
            )
        )
        self.name = name
        self.task = make(backbone, preprocessor)
        self.model = folder / name
        self.task.export(self.model)
        bounded = (with_bound(signature, DEFAULT_MAX_BYTES) for signature in self.task.signatures())
        self.signatures = {signature.name: signature for signature in bounded}
        self._answers: dict[tuple[str, bytes], dict[str, np.ndarray]] = {}

    def inputs(self, signature: str, column: np.ndarray) -> dict[str, np.ndarray]:
        """The inputs of a signature for a column of texts: strings, or the ids that `tokenize` makes of them."""
        if not signature.endswith("token_ids"):
            inputs = self.inputs_from(column)
            return {name: inputs[name] for name in self.signatures[signature].inputs}
        specs = self.signatures[signature].inputs
        tokens = self.ask_keras(signature.replace("token_ids", "tokenize"), column)
        # The windows of a question answerer are rows to its model.
        return {name: tokens[name].reshape(-1, *tokens[name].shape[-len(specs[name][0]) + 1 :]) for name in specs}

    def ask_keras(self, signature: str, column: np.ndarray) -> dict[str, np.ndarray]:
        """Keras's outputs for a signature; kept, as every runtime is compared with them."""
        key = signature, b"\n".join(column)
        if key not in self._answers:
            inputs = self.inputs(signature, column)
            found = self.signatures[signature]
            outputs = found.function(*(tf.constant(inputs[name]) for name in found.inputs))
            self._answers[key] = {name: np.asarray(value) for name, value in outputs.items()}
        return self._answers[key]

    def meaningful(self, signature: str, inputs: dict[str, np.ndarray], outputs: dict[str, np.ndarray]) -> Any:
        """The outputs with 0 at places of padding, where numbers have no meaning: graphs leave padding out."""
        mask = inputs["padding_mask"] if signature.endswith("token_ids") else None
        if mask is None or self.name not in WITH_AN_OUTPUT_A_TOKEN:
            return outputs
        places = mask.astype(bool)
        return {
            name: np.where(places[..., None] if value.ndim > 2 else places, value, 0) for name, value in outputs.items()
        }
