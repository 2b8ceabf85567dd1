"""`SpecialTokens`: reads the special and the added tokens of a HuggingFace directory, as transformers 5 does."""

import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, naming
from keras_bert_layers.checkpoints.files.json_file import check_object, optional_json, shown
from keras_bert_layers.checkpoints.files.vocabulary import check_num_tokens
from keras_bert_layers.preprocessing.tokens.markers import MASK, PAD, SEPARATOR, START, UNKNOWN
from keras_bert_layers.preprocessing.tokens.markers import ROLES as OUR_ROLES
from keras_bert_layers.preprocessing.tokens.token_ids import AddedToken, TokenIds

CONFIG, TOKENS_MAP, ADDED = "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"

ROLES = {"cls_token": START, "mask_token": MASK, "pad_token": PAD, "sep_token": SEPARATOR, "unk_token": UNKNOWN}
"""transformers' name of each role -> the token, in BERT's vocabularies."""
MPNET_ROLES = {**ROLES, "cls_token": "<s>", "mask_token": "<mask>", "pad_token": "<pad>", "sep_token": "</s>"}
"""The same in MPNet's."""
_OURS = {theirs: ours for ours, token in OUR_ROLES.items() for theirs, same in ROLES.items() if token == same}

ROLE_ORDER = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
"""The order in which missing tokens get their ids; transformers, tokenization_utils_base.py."""
_LISTS = ("extra_special_tokens", "additional_special_tokens")
_ARGUMENTS = ("single_word", "lstrip", "rstrip", "normalized", "special")


class SpecialTokens:
    """The special and the added tokens that the files of a directory describe.

    If `tokenizer_config.json` has `added_tokens_decoder`, it decides alone; otherwise `special_tokens_map.json`,
    `added_tokens.json` and `tokenizer.json` are read too.

    Args:
        folder: the directory.
        config: the content of `tokenizer_config.json`.
        stored: the entry `added_tokens` of `tokenizer.json`, without their ids counting; empty without that file.
        keeps_stored: whether the class of tokenizer uses them in any case.
        names: role -> token where no file names one, with transformers' names for the roles.
        adds_names: whether transformers adds these tokens to a vocabulary that does not have them.
        mask_strips: whether the mask takes the whitespace before it, where the files do not state it.

    Attributes:
        roles: the argument `special_tokens` of `BertTokenizer`.
        tokens: every added token, in the order in which those without an id get one.

    Raises:
        CheckpointError: an entry is not a token.
    """

    def __init__(
        self,
        folder: Path,
        config: Mapping[str, Any],
        stored: Iterable[Mapping[str, Any]],
        *,
        keeps_stored: bool,
        names: Mapping[str, str],
        adds_names: bool,
        mask_strips: bool = False,
    ):
        self._path, self._adds_names, self._mask_strips = folder / CONFIG, adds_names, mask_strips
        in_json = [self._token(entry) for entry in stored]
        values = dict(config)
        if _LISTS[1] in values and not values.get(_LISTS[0]):
            values[_LISTS[0]] = values.pop(_LISTS[1])
        if "added_tokens_decoder" in config:
            decoder = check_object(self._path, "added_tokens_decoder", config["added_tokens_decoder"])
            entries = sorted(
                ((self._id(token_id), entry) for token_id, entry in decoder.items()), key=lambda pair: pair[0]
            )
            decoded = [self._token(entry) for _, entry in entries]
            found = [*in_json, *decoded] if keeps_stored else decoded
            self._stated_ids = {token.content: token_id for (token_id, _), token in zip(entries, decoded, strict=True)}
        else:
            values = _with_map(values, optional_json(folder / TOKENS_MAP))
            self._stated_ids = {content: self._id(i) for content, i in optional_json(folder / ADDED).items()}
            # transformers does not look at this list here.
            standard = {key: value for key, value in values.items() if key != _LISTS[1]}
            special = {token.content for token in self._named(standard)}
            added = sorted(self._stated_ids, key=self._stated_ids.__getitem__)
            found = [*(AddedToken(content, special=content in special) for content in added), *in_json]
        self._nulls = [role for role in ROLES if values.get(role, "") is None]
        stated = {role: self._token(values[role]).content for role in ROLES if values.get(role) is not None}
        self.roles = {_OURS[role]: stated.get(role, name) for role, name in names.items()}
        by_content = {token.content: token for token in found}
        defaults = {role: name for role, name in names.items() if adds_names and role not in values}
        for token in self._named({**defaults, **values}):
            by_content.setdefault(token.content, token)
        self.tokens = list(by_content.values())

    def _named(self, values: Mapping[str, Any]) -> Iterator[AddedToken]:
        """The tokens of all roles, and then those in lists; strings are special tokens."""
        more = named_tokens(values)
        extra = values.get(_LISTS[0])
        # The second list counts where the first is absent, and beside tokens with names.
        lists = [key for key in _LISTS if key == _LISTS[0] or not isinstance(extra, list)]
        for role in (*ROLE_ORDER, *more):
            if values.get(role) is not None:
                entry = values[role]
                if role == "mask_token" and self._mask_strips and isinstance(entry, str):
                    entry = {"content": entry, "lstrip": True}
                yield self._token(entry, special=True)
        for key in lists:
            entries = values.get(key) or []
            if not isinstance(entries, list | dict):
                raise CheckpointError(f"{self._path}: `{key}` must be a list of tokens. Received: {shown(entries)}.")
            for entry in entries.values() if isinstance(entries, dict) else entries:
                yield self._token(entry, special=True)

    def _id(self, value: Any) -> int:
        try:
            return int(value)
        except (TypeError, ValueError) as error:
            raise CheckpointError(
                f"{self._path}: an added token's id must be a number. Received: {shown(value)}."
            ) from error

    def _token(self, entry: Any, *, special: bool = False) -> AddedToken:
        """A token from an entry, which is a string, or an object with flags for the text around it."""
        values = entry if isinstance(entry, Mapping) else {"content": entry}
        if not isinstance(values.get("content"), str):
            raise CheckpointError(f"{self._path.parent}: a token must be a string. Received: {shown(entry)}.")
        flags = {"special": special, **{key: values[key] for key in _ARGUMENTS if key in values}}
        with naming(f"{self._path.parent}: the token {shown(values['content'])}"):
            return AddedToken(values["content"], **flags)

    def options(self, vocabulary: Iterable[str]) -> dict[str, Any]:
        """The arguments `added_tokens` and `special_tokens` of a `BertTokenizer` with this vocabulary."""
        known = set(vocabulary)
        self._check_roles(known)
        self._warn_of_ids(known)
        roles = None if self.roles == OUR_ROLES else self.roles
        plain = [AddedToken(content, special=True) for content in self.roles.values() if content in known]
        tokens = [token for token in self.tokens if token not in plain]
        return {"added_tokens": [token.get_config() for token in tokens], "special_tokens": roles}

    def _check_roles(self, known: set[str]) -> None:
        """Refuses roles that no file gives a token: in raw text `BertTokenizer` finds the tokens of all roles.

        A null in the place of the start, the separator or the unknown token breaks transformers' template or model too.
        """
        contents = {token.content for token in self.tokens}
        broken = {"cls_token", "sep_token", "unk_token"} & {*self._nulls} if self._adds_names else ()
        for role, ours in _OURS.items():
            token, received = self.roles[ours], "null" if role in self._nulls else "no entry"
            if role in broken or (token in known and token not in contents):
                raise CheckpointError(
                    f"{self._path}: `{role}` must be a token: without one, transformers does not find {token!r} in "
                    f"texts, or puts another token in its place. Received: {received}. "
                    f'If the token is {token!r}, add "{role}": "{token}".'
                )

    def _warn_of_ids(self, known: set[str]) -> None:
        """Warns of stated ids that transformers does not give: it numbers new tokens without gaps."""
        new = [token.content for token in self.tokens if token.content not in known]
        ids = {content: len(known) + index for index, content in enumerate(new)}
        other = {content: i for content, i in ids.items() if self._stated_ids.get(content, i) != i}
        if other:
            content, token_id = next(iter(other.items()))
            warnings.warn(
                f"{self._path.parent}: the files state the id {self._stated_ids[content]} for the added token "
                f"{content!r}. It gets {token_id}, the next free one, as in transformers.",
                stacklevel=7,
            )


def named_tokens(values: Mapping[str, Any]) -> list[str]:
    """The keys of tokens that have names of their own, such as `film_token`; transformers adds them after the roles."""
    return [key for key in values if key.endswith("_token") and key not in ROLE_ORDER and isinstance(values[key], str)]


def role_names(special_tokens: Mapping[str, str]) -> dict[str, str]:
    """The special tokens by transformers' names for their roles, from those by ours."""
    return {theirs: special_tokens[ours] for theirs, ours in _OURS.items()}


def _with_map(values: dict[str, Any], tokens_map: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of `tokenizer_config.json` with those of `special_tokens_map.json`, which go first."""
    extra = _LISTS[0]
    own, more = values.get(extra), tokens_map.get(extra)
    merged = {**values, **tokens_map}
    if own is not None:
        merged[extra] = [*own, *more] if isinstance(own, list) and isinstance(more, list) else own
    return merged


def fit_embeddings(folder: Path, options: dict[str, Any], num_embeddings: int) -> dict[str, Any]:
    """The arguments of a `BertTokenizer`, without added tokens for which the model has no embedding.

    transformers' model fails on a text that holds such a token. It also adds [MASK] to a vocabulary without it.

    Raises:
        CheckpointError: the vocabulary itself has more tokens than there are embeddings.
    """
    vocabulary = list(options["vocabulary"])
    while len(vocabulary) > num_embeddings and not vocabulary[-1]:
        vocabulary.pop()  # empty lines at the end of the file
    check_num_tokens(folder, len(vocabulary), num_embeddings, "config.json's vocab_size")
    tokens = [AddedToken.of(token) for token in options["added_tokens"]]
    ids = TokenIds(vocabulary, tokens)
    kept = [token for token in tokens if ids.id_of(token.content) < num_embeddings]
    lost = [token.content for token in tokens if token not in kept]
    if lost:
        warnings.warn(
            f"{folder}: the tokenizer's files, or transformers' defaults, add {', '.join(map(repr, lost[:5]))} to the "
            f"vocabulary, but the model's {num_embeddings} embeddings have none for them. They are left out, and read "
            "as text; in transformers the model fails on them.",
            stacklevel=5,
        )
    return {**options, "vocabulary": vocabulary, "added_tokens": [token.get_config() for token in kept]}
