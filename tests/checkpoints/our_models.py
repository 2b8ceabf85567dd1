"""A small random model of every kind of this package, for the tests of writers."""

import functools

import keras
import numpy as np

from keras_bert_layers import (
    BertBackbone,
    BertClassifier,
    BertConfig,
    BertCrossEncoder,
    BertDualEncoder,
    BertMaskedLM,
    BertMultipleChoice,
    BertPreprocessor,
    BertPretrainer,
    BertQuestionAnswerer,
    BertSentenceEncoder,
    BertTokenClassifier,
    BertTokenizer,
)

VOCABULARY = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *["a", "good", "bad", "film", "night", "É", "é", "##ness", "##s", "中", "un", "##happy", "##ful"],
]
# Every size is its own, so that a swapped axis does not fit.
CONFIG = BertConfig(
    vocabulary_size=23,
    hidden_dim=15,
    num_layers=2,
    num_heads=3,
    intermediate_dim=22,
    activation="gelu_tanh",
    dropout=0.1,
    attention_dropout=0.2,
    max_sequence_length=17,
    num_segments=4,
    layer_norm_epsilon=1e-7,
    initializer_range=0.03,
)
MAX_LENGTH = 11
TEXTS = ["a good film", "bad", "unhappy nights, a bad film and 中 é"]
TAGS = ["O", "B-place", "I-place", "B-née"]

MAKERS = {
    "backbone": lambda backbone, preprocessor: backbone,
    "classifier": lambda backbone, preprocessor: BertClassifier(
        backbone, class_names=["bad", "good", "né"], preprocessor=preprocessor, dropout=0.25
    ),
    "unnamed_classifier": lambda backbone, preprocessor: BertClassifier(backbone, 5, preprocessor=preprocessor),
    "multi_label_classifier": lambda backbone, preprocessor: BertClassifier(
        backbone,
        class_names=["a", "b", "c", "d"],
        problem_type="multi_label_classification",
        preprocessor=preprocessor,
    ),
    "regression": lambda backbone, preprocessor: BertClassifier(
        backbone, problem_type="regression", preprocessor=preprocessor
    ),
    "token_classifier": lambda backbone, preprocessor: BertTokenClassifier(
        backbone, TAGS, preprocessor=preprocessor, dropout=0.3
    ),
    "question_answerer": BertQuestionAnswerer,
    "multiple_choice": lambda backbone, preprocessor: BertMultipleChoice(
        backbone, preprocessor=preprocessor, dropout=0.35
    ),
    "masked_lm": BertMaskedLM,
    "pretrainer": BertPretrainer,
    "sentence_encoder": lambda backbone, preprocessor: BertSentenceEncoder(backbone, "max", preprocessor=preprocessor),
    "projected_sentence_encoder": lambda backbone, preprocessor: BertSentenceEncoder(
        backbone,
        "cls",
        normalize=False,
        projection_dim=7,
        projection_activation="gelu_erf",
        preprocessor=preprocessor,
    ),
    "dual_encoder": lambda backbone, preprocessor: BertDualEncoder(
        backbone, normalize=False, preprocessor=preprocessor
    ),
    "cross_encoder": lambda backbone, preprocessor: BertCrossEncoder(backbone, preprocessor, dropout=0.05),
}


def randomised(model, seed=3):
    """The model with other numbers in every weight: zeros and ones of a fresh one would hide mistakes."""
    rng = np.random.default_rng(seed)
    for weight in model.weights:
        weight.assign(rng.normal(0, 0.3, weight.shape))
    return model


def preprocessor(reference="huggingface", **options):
    """Without options one for all models, as nothing changes it."""
    return _preprocessor(reference) if not options else _new_preprocessor(reference, **options)


def _new_preprocessor(reference, **options):
    return BertPreprocessor(BertTokenizer(VOCABULARY, reference=reference, **options), max_length=MAX_LENGTH)


_preprocessor = functools.cache(_new_preprocessor)


def make(kind, **options):
    return randomised(MAKERS[kind](BertBackbone(CONFIG), preprocessor(**options)))


def weights(model):
    """Every weight by its path, in the order of the model."""
    return {weight.path: keras.ops.convert_to_numpy(weight) for weight in model.weights}
