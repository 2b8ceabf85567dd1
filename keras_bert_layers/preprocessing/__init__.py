"""Text to tokens to model inputs, in TensorFlow graph."""

from typing import TYPE_CHECKING

from keras_bert_layers._internal.lazy import make_lazy

if TYPE_CHECKING:
    from keras_bert_layers.preprocessing.added_token import AddedToken
    from keras_bert_layers.preprocessing.bert_preprocessor import BertPreprocessor
    from keras_bert_layers.preprocessing.bert_tokenizer import BertTokenizer
    from keras_bert_layers.preprocessing.document_sentences import DocumentSentences
    from keras_bert_layers.preprocessing.full_sentences import FullSentences
    from keras_bert_layers.preprocessing.masked_lm_generator import MaskedLMGenerator
    from keras_bert_layers.preprocessing.masking import Masking
    from keras_bert_layers.preprocessing.next_sentence import NextSentence
    from keras_bert_layers.preprocessing.packed_texts import PackedTexts
    from keras_bert_layers.preprocessing.row_rule import RowRule
    from keras_bert_layers.preprocessing.sentence_order import SentenceOrder
    from keras_bert_layers.preprocessing.sentence_pairs import SentencePairs
    from keras_bert_layers.preprocessing.sentence_piece_tokenizer import SentencePieceTokenizer
    from keras_bert_layers.preprocessing.span_preprocessor import SpanPreprocessor
    from keras_bert_layers.preprocessing.token_documents import TokenDocuments
    from keras_bert_layers.preprocessing.token_rows import TokenRows
    from keras_bert_layers.preprocessing.vocabulary_trainer import train_vocabulary
    from keras_bert_layers.preprocessing.word_aligner import WordAligner

__all__ = [
    "AddedToken",
    "BertPreprocessor",
    "BertTokenizer",
    "DocumentSentences",
    "FullSentences",
    "MaskedLMGenerator",
    "Masking",
    "NextSentence",
    "PackedTexts",
    "RowRule",
    "SentenceOrder",
    "SentencePairs",
    "SentencePieceTokenizer",
    "SpanPreprocessor",
    "TokenDocuments",
    "TokenRows",
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
        "DocumentSentences": "document_sentences",
        "FullSentences": "full_sentences",
        "MaskedLMGenerator": "masked_lm_generator",
        "Masking": "masking",
        "NextSentence": "next_sentence",
        "PackedTexts": "packed_texts",
        "RowRule": "row_rule",
        "SentenceOrder": "sentence_order",
        "SentencePairs": "sentence_pairs",
        "SentencePieceTokenizer": "sentence_piece_tokenizer",
        "SpanPreprocessor": "span_preprocessor",
        "TokenDocuments": "token_documents",
        "TokenRows": "token_rows",
        "WordAligner": "word_aligner",
        "train_vocabulary": "vocabulary_trainer",
    },
)
