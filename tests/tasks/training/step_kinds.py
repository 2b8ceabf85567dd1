"""Small tasks of every kind, and 7 rows that each reads: what the programs and tests of compiled steps share."""

import functools
from typing import Any

import keras
import numpy as np

import keras_bert_layers as kbl
from keras_bert_layers.preprocessing import SpanPreprocessor

VOCABULARY = "[PAD] [UNK] [CLS] [SEP] [MASK] a good bad film night ?".split()
TEXTS = ["a good film", "a bad night", "good good night bad film " * 2 + "a bad", "film", "a good", "bad", "night ?"]
OTHERS = ["good", "film", "night", "a", "bad bad", "a night", "?"]
WORDS = [text.split() for text in TEXTS]
TAGS = [(["B-x", "I-x", "O", "O", "B-x"] * 3)[: len(words)] for words in WORDS]
CLASSES = ["good", "bad", "good", "bad", "bad", "good", "bad"]
PAIRS = (TEXTS, OTHERS)
NAMES = {"class_names": ["bad", "good"]}

#: Kind -> the task, its arguments, `x` and `y`.
KINDS: dict[str, tuple[type[kbl.tasks.Task], dict[str, Any], Any, Any]] = {
    "classes": (kbl.BertClassifier, NAMES, TEXTS, CLASSES),
    "pairs": (kbl.BertClassifier, {**NAMES, "pairs": True}, PAIRS, CLASSES),
    "several labels": (
        kbl.BertClassifier,
        {**NAMES, "problem_type": "multi_label_classification"},
        TEXTS,
        [[name] for name in CLASSES],
    ),
    "numbers": (kbl.BertClassifier, {"problem_type": "regression"}, TEXTS, np.arange(7.0)),
    "tags": (kbl.BertTokenClassifier, {"tag_names": ["O", "B-x", "I-x"]}, WORDS, TAGS),
    "tags by a field": (kbl.BertTokenClassifier, {"tag_names": ["O", "B-x", "I-x"], "crf": True}, WORDS, TAGS),
    "answers": (kbl.BertQuestionAnswerer, {}, (["?"] * 7, TEXTS), ([0] * 7, [words[0] for words in WORDS])),
    "choices": (kbl.BertMultipleChoice, {}, (TEXTS, [[other, "a"] for other in OTHERS]), [0, 1, 0, 1, 1, 0, 1]),
    "masks": (kbl.BertMaskedLM, {"seed": 3}, TEXTS, None),
    "masks and next sentences": (kbl.BertPretrainer, {"seed": 3}, PAIRS, [0, 1, 0, 1, 1, 0, 1]),
    "vectors": (kbl.BertSentenceEncoder, {}, PAIRS, None),
    "queries": (kbl.BertDualEncoder, {}, PAIRS, None),
    "scores": (kbl.BertCrossEncoder, {}, PAIRS, [0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.5]),
}


@functools.cache  # what it traces, it traces once
def tokenizer() -> kbl.BertTokenizer:
    return kbl.BertTokenizer(VOCABULARY)


def make_task(kind: str, *, padding: str = "bucket", **options: Any) -> kbl.tasks.Task:
    """A task with the same weights each time, compiled with these options."""
    make, arguments, *_ = KINDS[kind]
    keras.utils.set_random_seed(3)
    sizes = {"hidden_dim": 15, "num_layers": 1, "num_heads": 3, "intermediate_dim": 21, "max_sequence_length": 20}
    sizes |= {"dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.3}
    backbone = kbl.BertBackbone(kbl.BertConfig(vocabulary_size=len(VOCABULARY), **sizes))
    if make is kbl.BertQuestionAnswerer:
        preprocessor = SpanPreprocessor(tokenizer(), max_length=20, stride=2, padding=padding)
    else:
        preprocessor = kbl.BertPreprocessor(tokenizer(), max_length=20, padding=padding)
    task = make(backbone, preprocessor=preprocessor, **arguments)
    task.compile(**options)
    return task
