"""Writing SavedModels that take strings."""

from keras_bert_layers.export.saved_model import Signature, write_saved_model

__all__ = ["Signature", "write_saved_model"]
