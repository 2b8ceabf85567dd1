"""`distill_static`: a static encoder, a table of token vectors, from a sentence encoder."""

from collections.abc import Iterable

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.preprocessing import BertPreprocessor
from keras_bert_layers.preprocessing.tokenizer import Tokenizer
from keras_bert_layers.preprocessing.tokens.markers import SUFFIX
from keras_bert_layers.preprocessing.word_piece.vocabulary_trainer import text_batches
from keras_bert_layers.static_backbone import StaticBackbone
from keras_bert_layers.tasks.prediction.length_batches import with_progress
from keras_bert_layers.tasks.sentence_encoder import BertSentenceEncoder
from keras_bert_layers.tasks.static_encoder import BertStaticEncoder

OWNER = "distill_static"

_DIM = 256

# As many tokens go through the encoder at a time.
_BATCH_SIZE = 1024

# A long text costs little: time grows with its length, and not with the square.
_MAX_LENGTH = 512


def distill_static(
    encoder: BertSentenceEncoder,
    *,
    dim: int | None = None,
    sif_coefficient: float = 1e-3,
    texts: Iterable[str] | None = None,
    verbose: str | int = 0,
) -> BertStaticEncoder:
    """Makes a static encoder: each token of the vocabulary goes through a sentence encoder, alone.

    The vector of a token is what the encoder makes of `[CLS] token [SEP]`, before it is scaled to length 1. The vectors
    are rotated to their `dim` principal components, which are not centered, each divided by the fourth root of its mean
    square; and weighted by `a / (a + p)`, where `a` is the coefficient and `p` the probability of the token, so that
    frequent tokens count little. `[CLS]`, `[SEP]`, `[UNK]` and `[PAD]` have zeros. The encoder's prompts are not read.
    The result is the same each time.

    Args:
        encoder: a `BertSentenceEncoder` with a preprocessor; it stays unchanged.
        dim: width of the new vectors, at most that of the encoder's; None for 256, or for all of a narrower encoder's.
        sif_coefficient: `a`; a smaller one weights frequent tokens less.
        texts: texts in which the tokens are counted, to estimate their probability. None takes Zipf's law: the
            vocabulary is in the order of frequency, as those of BERT are, and the probability of rank r is proportional
            to 1 / (r + 1). Single characters, which have no rank there, count as the word before them.
        verbose: as in `predict`; the bar counts batches of tokens.

    Returns:
        A `BertStaticEncoder` with the tokenizer of the encoder, which reads 512 tokens of a text. Like any task, it
        trains on, and can be saved and exported.

    Raises:
        TypeError: `encoder` is not a `BertSentenceEncoder`; a text is not a string.
        ValueError: the encoder has no preprocessor; `dim` is larger than its vectors; texts without tokens.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=6, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog"])
        >>> backbone, preprocessor = kbl.BertBackbone(config), kbl.BertPreprocessor(tokenizer)
        >>> encoder = kbl.BertSentenceEncoder(backbone, preprocessor=preprocessor)
        >>> distill_static(encoder, dim=3).predict(["dog cat"], verbose=0).shape
        (1, 3)

    References:
        Tulkens and van Dongen 2024, Model2Vec, https://github.com/MinishLab/model2vec; Arora et al. 2017, A Simple but
        Tough-to-Beat Baseline for Sentence Embeddings (SIF), https://openreview.net/forum?id=SyK00v5xx, section 3.
    """
    checks.instance(OWNER, "encoder", encoder, BertSentenceEncoder)
    if encoder.preprocessor is None:
        raise ValueError(checks.message(OWNER, "encoder.preprocessor", "be given", None))
    vectors = encoder.get_layer("normalize").input if encoder.normalize else encoder.output
    width = vectors.shape[-1]
    dim = min(_DIM, width) if dim is None else checks.positive_integer(OWNER, "dim", dim)
    if dim > width:
        raise ValueError(checks.message(OWNER, "dim", f"be at most the width of the encoder's vectors, {width}", dim))
    checks.positive_number(OWNER, "sif_coefficient", sif_coefficient)
    tokenizer = encoder.preprocessor.tokenizer
    probabilities = _by_rank(tokenizer) if texts is None else _by_counts(tokenizer, texts)
    weights = sif_coefficient / (sif_coefficient + probabilities)
    weights[[tokenizer.pad_id, tokenizer.unknown_id, tokenizer.start_id, tokenizer.separator_id]] = 0
    model = keras.Model(encoder.input, vectors)
    table = _components(_token_vectors(model, tokenizer, verbose), dim) * weights[:, None]
    backbone = StaticBackbone(len(table), dim, dtype="float32")
    backbone.set_weights([table])
    return BertStaticEncoder(backbone, preprocessor=BertPreprocessor(tokenizer, max_length=_MAX_LENGTH))


def _token_vectors(model: keras.Model, tokenizer: Tokenizer, verbose: str | int = 0) -> np.ndarray:
    """The encoder's vector of each token, `[V, H]`."""
    ids = np.full((tokenizer.vocabulary_size(), 3), [tokenizer.start_id, 0, tokenizer.separator_id], np.int32)
    ids[:, 1] = np.arange(len(ids))
    batches = [ids[start : start + _BATCH_SIZE] for start in range(0, len(ids), _BATCH_SIZE)]
    inputs = [{"token_ids": rows, "segment_ids": 0 * rows, "padding_mask": 0 * rows + 1} for rows in batches]
    found = with_progress((model.predict_on_batch(batch) for batch in inputs), len(inputs), verbose)
    return np.concatenate(list(found)).astype(np.float64)


def _components(vectors: np.ndarray, dim: int) -> np.ndarray:
    """The first principal components, not centered, each divided by the fourth root of its mean square, `[V, dim]`."""
    squares, directions = np.linalg.eigh(vectors.T @ vectors / len(vectors))
    squares, directions = squares[::-1][:dim], directions[:, ::-1][:, :dim]
    # Fewer tokens than dimensions leave directions in which all components are about 0.
    return vectors @ directions / np.where(squares > 1e-9 * squares[0], squares, np.inf) ** 0.25


def _by_rank(tokenizer: Tokenizer) -> np.ndarray:
    """The probability of each token by Zipf's law, from its rank in the vocabulary."""
    tokens = tokenizer.all_tokens()
    # Special and unused tokens, such as [MASK] and [unused7], come before words, and single characters too.
    has_rank = np.array([len(token.removeprefix(SUFFIX)) > 1 and token[:1] + token[-1:] != "[]" for token in tokens])
    inverse = 1 / (1 + np.maximum(np.cumsum(has_rank), 1))
    return inverse / max(inverse[has_rank].sum(), 1)


def _by_counts(tokenizer: Tokenizer, texts: Iterable[str]) -> np.ndarray:
    """The share of each token among those of the texts."""
    counts = np.zeros(tokenizer.vocabulary_size())
    for batch in text_batches(OWNER, texts):
        counts += np.bincount(tokenizer.tokenize(batch).values.numpy(), minlength=len(counts))
    if not counts.any():
        raise ValueError(checks.message(OWNER, "texts", "hold at least one token", checks.Shown("none")))
    return counts / counts.sum()
