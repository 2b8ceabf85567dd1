"""Kinds of data, one class each: turns user data into batches of ids and labels, and outputs into rows again."""

from keras_bert_layers.tasks.inputs.candidates import RelevanceInputs
from keras_bert_layers.tasks.inputs.choices import ChoiceInputs
from keras_bert_layers.tasks.inputs.columns import ColumnInputs
from keras_bert_layers.tasks.inputs.comparisons import ComparedInputs, QueryInputs
from keras_bert_layers.tasks.inputs.documents import DocumentInputs
from keras_bert_layers.tasks.inputs.features import FeatureInputs
from keras_bert_layers.tasks.inputs.inputs import Inputs
from keras_bert_layers.tasks.inputs.masked import MaskedInputs
from keras_bert_layers.tasks.inputs.questions import QuestionInputs
from keras_bert_layers.tasks.inputs.texts import TextInputs
from keras_bert_layers.tasks.inputs.words import WordInputs

__all__ = [
    "ChoiceInputs",
    "ColumnInputs",
    "ComparedInputs",
    "DocumentInputs",
    "FeatureInputs",
    "Inputs",
    "MaskedInputs",
    "QueryInputs",
    "QuestionInputs",
    "RelevanceInputs",
    "TextInputs",
    "WordInputs",
]
