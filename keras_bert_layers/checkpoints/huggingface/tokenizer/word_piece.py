"""`word_piece_options`: reads the tokenizer files of BERT and its like, as the class in transformers reads them."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, missing
from keras_bert_layers.checkpoints.files.json_file import check_boolean, shown
from keras_bert_layers.checkpoints.files.vocabulary import CASED_SHARE, cased_share, read_vocabulary
from keras_bert_layers.checkpoints.huggingface.tokenizer.json_file import TokenizerClass, TokenizerJson, check_sides
from keras_bert_layers.checkpoints.huggingface.tokenizer.special_tokens import CONFIG, MPNET_ROLES, ROLES, SpecialTokens
from keras_bert_layers.checkpoints.huggingface.tokenizer.stated_tokens import named_class
from keras_bert_layers.checkpoints.sentence_transformers.modules import text_settings

_BERT = ("Bert", "DistilBert", "Electra", "MobileBert", "SqueezeBert", "LayoutLM", "Lxmert")
_DPR = ("DPRContextEncoder", "DPRQuestionEncoder")
_LEGACY = ("RetriBert", "Realm", "Ernie", "Nezha", "Bros")

_REASONS = {
    "BertJapanese": "It splits Japanese text into words with a dictionary (MeCab, Sudachi or Juman++) first.",
    "Splinter": "It adds a [QUESTION] token of Splinter's.",
    "Funnel": "Its special tokens and segments are those of Funnel.",
    "BertGeneration": "It is a SentencePiece tokenizer.",
}

# transformers, models/bert/tokenization_bert.py: the arguments' names and defaults, by ours.
_OPTIONS = {"lowercase": "do_lower_case", "strip_accents": "strip_accents", "split_chinese": "tokenize_chinese_chars"}
_DEFAULTS = {"lowercase": True, "strip_accents": None, "split_chinese": True}

# Settings of tokenizers written in Python, with the values under which they change nothing.
_UNUSED: dict[str, tuple[Any, ...]] = {"do_basic_tokenize": (True, None), "never_split": (None, [])}


_CLASSES: dict[str | None, TokenizerClass] = {
    None: TokenizerClass.BERT,
    # A mistake in the file, for which releases of transformers before 5 take the class of the model.
    "AutoTokenizer": TokenizerClass.BERT,
    **{f"{name}Tokenizer{fast}": TokenizerClass.BERT for name in (*_BERT, *_DPR) for fast in ("", "Fast")},
    **{f"{name}TokenizerFast": TokenizerClass.STORED_BERT for name in _DPR},
    **{f"MPNetTokenizer{fast}": TokenizerClass.BERT for fast in ("", "Fast")},
    **{f"ConvBertTokenizer{fast}": TokenizerClass.STORED_BERT for fast in ("", "Fast")},
    # Classes that transformers 5 no longer has read tokenizer.json as it is.
    **{f"{name}Tokenizer{fast}": TokenizerClass.GENERIC for name in _LEGACY for fast in ("", "Fast")},
    **dict.fromkeys(("PreTrainedTokenizer", "PreTrainedTokenizerFast", "TokenizersBackend"), TokenizerClass.GENERIC),
}


def tokenizer_class(path: Path, name: object, *, has_json: bool) -> TokenizerClass:
    """The part of `tokenizer.json` that the class with this name reads.

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


def word_piece_options(folder: Path, config: Mapping[str, Any], default_class: str | None = None) -> dict[str, Any]:
    """The arguments of a `BertTokenizer` that the tokenizer files of a directory describe, as transformers reads them.

    The tokens come from `tokenizer.json`, or from `vocab.txt` if there is none. `tokenizer_class` in
    `tokenizer_config.json`, or else in `config.json`, decides what else `tokenizer.json` decides: see `TokenizerClass`.
    The `do_lower_case` of sentence-transformers lower-cases text before a tokenizer that does not, and keeps accents.

    Args:
        folder: the directory with the tokenizer files.
        config: the content of `tokenizer_config.json`; empty if there is none.
        default_class: the class of tokenizer of the model type, where no file names one.

    Returns:
        `vocabulary`, `lowercase`, `strip_accents`, `split_chinese`, `num_pair_separators`, `added_tokens` and
        `special_tokens`.

    Raises:
        CheckpointError: there is no vocabulary; a file is damaged; `BertTokenizer` does not have a setting.
    """
    _check_config(folder / CONFIG, config)
    path = folder / "tokenizer.json"
    stated_class = named_class(folder, config, default_class if default_class in _CLASSES else None)
    kind = tokenizer_class(*stated_class, has_json=path.is_file())
    is_of_mpnet = str(stated_class[1]).startswith("MPNet")
    tokenizer_json = TokenizerJson(path, kind) if path.is_file() else None
    check_sides(folder / CONFIG, config, pads_left=tokenizer_json is not None and tokenizer_json.pads_left)
    names = MPNET_ROLES if is_of_mpnet else ROLES
    num_separators = 2 if is_of_mpnet else 1 if tokenizer_json is None else tokenizer_json.num_pair_separators
    tokens = SpecialTokens(
        folder,
        config,
        tokenizer_json.added_tokens if tokenizer_json else (),
        keeps_stored=kind is not TokenizerClass.BERT,
        names=tokenizer_json.roles if tokenizer_json and kind is TokenizerClass.GENERIC else names,
        adds_names=kind is not TokenizerClass.GENERIC,
        mask_strips=is_of_mpnet,
    )
    required = {token for role, token in tokens.roles.items() if role != "mask"}
    required -= {token.content for token in tokens.tokens} - {tokens.roles["unknown"]}
    if tokenizer_json is not None:
        tokenizer_json.check_roles(tokens.roles)
        vocabulary, stated = tokenizer_json.vocabulary(required), tokenizer_json.options
        if tokenizer_json.unread:
            warnings.warn(
                f"{tokenizer_json.unread} BertTokenizer reads only the tokens of this file, as in transformers. If the "
                "model was trained with all of it, texts become other tokens.",
                stacklevel=6,
            )
    elif (folder / "vocab.txt").is_file():
        vocabulary, stated = tuple(read_vocabulary(folder / "vocab.txt", required=required)), None
    else:
        raise missing(folder, "a vocab.txt or a tokenizer.json", owner="load_tokenizer")
    options = _options(folder, config, stated, kind, vocabulary)
    _, lowercase = text_settings(folder)
    if lowercase and not options["lowercase"]:
        options |= {"lowercase": True, "strip_accents": bool(options["strip_accents"])}
    options["num_pair_separators"] = num_separators
    return {"vocabulary": vocabulary, **options, **tokens.options(vocabulary)}


def _options(
    folder: Path,
    config: Mapping[str, Any],
    stated: Mapping[str, Any] | None,
    kind: TokenizerClass,
    vocabulary: Sequence[str],
) -> dict[str, Any]:
    """`lowercase`, `strip_accents` and `split_chinese`; warns if the files contradict what transformers takes."""
    if stated is not None and kind is not TokenizerClass.BERT:
        return dict(stated)
    options = {ours: config.get(theirs, _DEFAULTS[ours]) for ours, theirs in _OPTIONS.items()}
    names = [theirs for theirs in _OPTIONS.values() if theirs in config]
    if stated is not None and _effective(options) != _effective(stated):
        source = f"{CONFIG} states" if names else f"{CONFIG} states nothing, and transformers' defaults are"
        warnings.warn(
            f"{folder}: {source} {_effective(options)}, tokenizer.json {_effective(stated)}. Following the first, as "
            f"transformers does. If the model was trained with the second, write them into {CONFIG}.",
            stacklevel=7,
        )
    elif "do_lower_case" not in config and (cased := cased_share(vocabulary) or 0.0) >= CASED_SHARE:
        warnings.warn(
            f"{folder}: texts are lower-cased, the default of transformers, as {CONFIG} has no `do_lower_case`. That "
            f"may be wrong: {cased:.0%} of the tokens with Latin letters have a capital one, and no "
            f'text can match these. For a cased model write `"do_lower_case": false` there; `true` silences this.',
            stacklevel=7,
        )
    return options


def stated_options(config: Mapping[str, Any]) -> dict[str, Any]:
    """`lowercase`, `strip_accents` and `split_chinese` by `tokenizer_config.json` and BERT's defaults."""
    return _effective({ours: config.get(theirs, _DEFAULTS[ours]) for ours, theirs in _OPTIONS.items()})


def _effective(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with the default of `strip_accents` filled in."""
    strip_accents = options["lowercase"] if options["strip_accents"] is None else options["strip_accents"]
    return {**options, "strip_accents": strip_accents}


def _check_config(path: Path, config: Mapping[str, Any]) -> None:
    for ours, theirs in _OPTIONS.items():
        if theirs in config and not (ours == "strip_accents" and config[theirs] is None):
            check_boolean(path, theirs, config[theirs])
    unused = [key for key, nothing in _UNUSED.items() if config.get(key, nothing[0]) not in nothing]
    if unused:
        warnings.warn(
            f"{path}: {' and '.join(f'`{key}`' for key in unused)} changes nothing, as in transformers 5 and its fast "
            "tokenizers before. A model that was trained with a slow tokenizer may have seen other tokens.",
            stacklevel=6,
        )
