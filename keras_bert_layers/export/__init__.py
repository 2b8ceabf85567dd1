"""Writing SavedModels that take strings."""

from keras_bert_layers.export.saved_model import write_saved_model
from keras_bert_layers.export.signature import Signature

__all__ = ["Signature", "write_saved_model"]
