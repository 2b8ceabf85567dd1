"""Text to tokens to model inputs, in TensorFlow graph."""

from typing import TYPE_CHECKING

from keras_bert_layers._internal.lazy import make_lazy

if TYPE_CHECKING:
    from keras_bert_layers.preprocessing.added_token import AddedToken
    from keras_bert_layers.preprocessing.bert_preprocessor import BertPreprocessor
    from keras_bert_layers.preprocessing.bert_tokenizer import BertTokenizer
    from keras_bert_layers.preprocessing.masked_lm_generator import MaskedLMGenerator
    from keras_bert_layers.preprocessing.masking import Masking
    from keras_bert_layers.preprocessing.sentence_pairs import SentencePairs
    from keras_bert_layers.preprocessing.sentence_piece_tokenizer import SentencePieceTokenizer
    from keras_bert_layers.preprocessing.span_preprocessor import SpanPreprocessor
    from keras_bert_layers.preprocessing.vocabulary_trainer import train_vocabulary
    from keras_bert_layers.preprocessing.word_aligner import WordAligner

__all__ = [
    "AddedToken",
    "BertPreprocessor",
    "BertTokenizer",
    "MaskedLMGenerator",
    "Masking",
    "SentencePairs",
    "SentencePieceTokenizer",
    "SpanPreprocessor",
    "WordAligner",
    "train_vocabulary",
]

# Vocabularies are read without Keras.
make_lazy(
    __name__,
    {
        "AddedToken": "added_token",
        "BertPreprocessor": "bert_preprocessor",
        "BertTokenizer": "bert_tokenizer",
        "MaskedLMGenerator": "masked_lm_generator",
        "Masking": "masking",
        "SentencePairs": "sentence_pairs",
        "SentencePieceTokenizer": "sentence_piece_tokenizer",
        "SpanPreprocessor": "span_preprocessor",
        "WordAligner": "word_aligner",
        "train_vocabulary": "vocabulary_trainer",
    },
)
