"""Pictures of a BERT: figures for papers, pages for a browser, and output for notebooks."""

from keras_bert_layers.visualization.architecture import Architecture
from keras_bert_layers.visualization.attention_grid import AttentionGrid
from keras_bert_layers.visualization.attention_lines import AttentionLines
from keras_bert_layers.visualization.attention_map import AttentionMap
from keras_bert_layers.visualization.hidden_state_map import HiddenStateMap
from keras_bert_layers.visualization.input_picture import InputPicture
from keras_bert_layers.visualization.learning_rate_curve import LearningRateCurve
from keras_bert_layers.visualization.masked_tokens import MaskedTokens
from keras_bert_layers.visualization.picture import Picture
from keras_bert_layers.visualization.report_picture import ReportPicture
from keras_bert_layers.visualization.text_highlights import TextHighlights
from keras_bert_layers.visualization.training_curves import TrainingCurves

__all__ = [
    "Architecture",
    "AttentionGrid",
    "AttentionLines",
    "AttentionMap",
    "HiddenStateMap",
    "InputPicture",
    "LearningRateCurve",
    "MaskedTokens",
    "Picture",
    "ReportPicture",
    "TextHighlights",
    "TrainingCurves",
]
