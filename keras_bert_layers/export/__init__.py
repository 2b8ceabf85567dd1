"""Export to SavedModels that take strings."""

from keras_bert_layers.export.model_card import read_model_card
from keras_bert_layers.export.saved_model import write_saved_model
from keras_bert_layers.export.signature import Signature

__all__ = ["Signature", "read_model_card", "write_saved_model"]
