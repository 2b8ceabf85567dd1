"""Text to tokens to model inputs, in TensorFlow graph."""

from keras_bert_layers.preprocessing.bert_preprocessor import BertPreprocessor
from keras_bert_layers.preprocessing.bert_tokenizer import BertTokenizer
from keras_bert_layers.preprocessing.masked_lm_generator import MaskedLMGenerator
from keras_bert_layers.preprocessing.sentence_pairs import SentencePairs
from keras_bert_layers.preprocessing.span_preprocessor import SpanPreprocessor
from keras_bert_layers.preprocessing.word_aligner import WordAligner

__all__ = ["BertPreprocessor", "BertTokenizer", "MaskedLMGenerator", "SentencePairs", "SpanPreprocessor", "WordAligner"]
