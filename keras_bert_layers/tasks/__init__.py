"""Tasks: Keras models that take raw text and return answers."""

from keras_bert_layers.tasks.classification_error import ClassificationError
from keras_bert_layers.tasks.classification_report import ClassificationReport
from keras_bert_layers.tasks.classifier import BertClassifier
from keras_bert_layers.tasks.cross_encoder import BertCrossEncoder
from keras_bert_layers.tasks.dual_encoder import BertDualEncoder
from keras_bert_layers.tasks.masked_lm import BertMaskedLM
from keras_bert_layers.tasks.multiple_choice import BertMultipleChoice
from keras_bert_layers.tasks.position_extender import extend_positions
from keras_bert_layers.tasks.position_interpolator import interpolate_positions
from keras_bert_layers.tasks.pretrainer import BertPretrainer
from keras_bert_layers.tasks.question_answerer import BertQuestionAnswerer
from keras_bert_layers.tasks.sentence_encoder import BertSentenceEncoder
from keras_bert_layers.tasks.task import Task
from keras_bert_layers.tasks.token_classifier import BertTokenClassifier
from keras_bert_layers.tasks.token_rate import TokenRate
from keras_bert_layers.tasks.vocabulary_extender import extend_vocabulary
from keras_bert_layers.tasks.vocabulary_pruner import prune_vocabulary

__all__ = [
    "BertClassifier",
    "BertCrossEncoder",
    "BertDualEncoder",
    "BertMaskedLM",
    "BertMultipleChoice",
    "BertPretrainer",
    "BertQuestionAnswerer",
    "BertSentenceEncoder",
    "BertTokenClassifier",
    "ClassificationError",
    "ClassificationReport",
    "Task",
    "TokenRate",
    "extend_positions",
    "extend_vocabulary",
    "interpolate_positions",
    "prune_vocabulary",
]
