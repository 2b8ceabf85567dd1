"""`TokenizerClass`: what the classes of transformers' tokenizers read from the files of a directory."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.files.json_file import shown

_BERT = ("Bert", "DistilBert", "Electra", "MobileBert", "SqueezeBert", "LayoutLM", "Lxmert")
_DPR = ("DPRContextEncoder", "DPRQuestionEncoder")
_LEGACY = ("RetriBert", "Realm", "Ernie", "Nezha", "Bros")

_REASONS = {
    "BertJapanese": "It splits Japanese text into words with a dictionary (MeCab, Sudachi or Juman++) first.",
    "MPNet": "Its special tokens and its template for pairs are those of MPNet.",
    "Splinter": "It adds a [QUESTION] token of Splinter's.",
    "Funnel": "Its special tokens and segments are those of Funnel.",
    "BertGeneration": "It is a SentencePiece tokenizer.",
}


class TokenizerClass(Enum):
    """What a tokenizer takes from `tokenizer.json`.

    - `BERT`: the tokens. Everything else comes from `tokenizer_config.json`, or from BERT's defaults.
    - `STORED_BERT`: everything but the special tokens, which come from `tokenizer_config.json` or BERT's defaults.
    - `GENERIC`: everything.
    """

    BERT = "bert"
    STORED_BERT = "stored_bert"
    GENERIC = "generic"


_CLASSES: dict[str | None, TokenizerClass] = {
    None: TokenizerClass.BERT,
    # A mistake in the file, for which releases of transformers before 5 take the class of the model.
    "AutoTokenizer": TokenizerClass.BERT,
    **{f"{name}Tokenizer{fast}": TokenizerClass.BERT for name in (*_BERT, *_DPR) for fast in ("", "Fast")},
    **{f"{name}TokenizerFast": TokenizerClass.STORED_BERT for name in _DPR},
    **{f"ConvBertTokenizer{fast}": TokenizerClass.STORED_BERT for fast in ("", "Fast")},
    # Classes that transformers 5 no longer has read tokenizer.json as it is.
    **{f"{name}Tokenizer{fast}": TokenizerClass.GENERIC for name in _LEGACY for fast in ("", "Fast")},
    **dict.fromkeys(("PreTrainedTokenizer", "PreTrainedTokenizerFast", "TokenizersBackend"), TokenizerClass.GENERIC),
}


def tokenizer_class(path: Path, name: Any, *, has_json: bool) -> TokenizerClass:
    """What the class with this name reads.

    Args:
        path: the file that names it, for errors.
        name: the class, or None if no file names one.
        has_json: whether there is a `tokenizer.json`; without it every class reads `vocab.txt` as BERT's does.

    Raises:
        CheckpointError: it is not a tokenizer of BERT's.
    """
    if not isinstance(name, str | None) or name not in _CLASSES:
        reason = next((text for kind, text in _REASONS.items() if str(name).startswith(f"{kind}Tokenizer")), "")
        names = ", ".join(known for known in _CLASSES if known and not known.endswith("Fast"))
        raise CheckpointError(
            f"{path}: `tokenizer_class` must be one of {names}, or the Fast class of one. Received: {shown(name)}. "
            f"{reason or 'If tokenizer.json describes the tokenizer in full, write PreTrainedTokenizerFast.'}"
        )
    return _CLASSES[name] if has_json else TokenizerClass.BERT
