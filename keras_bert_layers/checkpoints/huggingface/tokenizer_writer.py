"""`write_huggingface_tokenizer`: writes the tokenizer files of transformers and of the library `tokenizers`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from keras_bert_layers.checkpoints.files.json_file import write_json
from keras_bert_layers.checkpoints.files.vocabulary import vocabulary_bytes
from keras_bert_layers.checkpoints.huggingface.special_tokens import role_names
from keras_bert_layers.preprocessing import AddedToken, BertTokenizer


def write_huggingface_tokenizer(
    directory: Path,
    tokenizer: BertTokenizer,
    *,
    max_length: int,
    kind: str = "BertTokenizer",
    truncation_side: str = "right",
) -> None:
    """Writes `tokenizer.json`, `tokenizer_config.json`, `special_tokens_map.json` and `vocab.txt`.

    The first is the whole tokenizer for the library `tokenizers`; the second gives transformers its class and the
    maximum length; the third is for releases of transformers before 5, the last for programs that read no other file. A
    tokenizer with `reference="huggingface"` gives the same ids there.

    Args:
        directory: the directory.
        tokenizer: the tokenizer.
        max_length: the maximum length in tokens, special tokens included.
        kind: the class of transformers.
        truncation_side: where texts that are too long lose tokens.

    References:
        https://github.com/huggingface/tokenizers, `serialization` of the Rust crate.
    """
    options = tokenizer.get_config()
    vocabulary: list[str] = options["vocabulary"]
    known = tokenizer.all_tokens()
    roles = {role: token if token in known else None for role, token in role_names(tokenizer.special_tokens).items()}
    (directory / "tokenizer.json").write_bytes(f"{_tokenizer_json(tokenizer, roles)}\n".encode())
    settings = {
        "tokenizer_class": kind,
        "do_lower_case": options["lowercase"],
        "strip_accents": options["strip_accents"],
        "tokenize_chinese_chars": options["split_chinese"],
        "model_max_length": max_length,
        **roles,
    }
    if truncation_side != "right":
        settings["truncation_side"] = truncation_side
    if tokenizer.added_tokens:
        tokens = _added_tokens(tokenizer, roles)
        settings["added_tokens_decoder"] = {
            str(tokenizer.token_to_id(token.content)): token.get_config() for token in tokens
        }
    write_json(directory / "tokenizer_config.json", settings)
    write_json(directory / "special_tokens_map.json", {role: token for role, token in roles.items() if token})
    if not any(end in token for token in vocabulary for end in "\r\n"):  # such a token does not fit in a line
        (directory / "vocab.txt").write_bytes(vocabulary_bytes(vocabulary))


def _added_tokens(tokenizer: BertTokenizer, roles: Mapping[str, str | None]) -> list[AddedToken]:
    """The special tokens and the added ones, in order of their ids."""
    tokens = {token: AddedToken(token, special=True) for token in roles.values() if token}
    tokens |= {token.content: token for token in tokenizer.added_tokens}
    return sorted(tokens.values(), key=lambda token: tokenizer.token_to_id(token.content))


def _tokenizer_json(tokenizer: BertTokenizer, roles: Mapping[str, str | None]) -> str:
    """The content of `tokenizer.json`."""
    import tokenizers
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    options = tokenizer.get_config()
    start, separator = roles["cls_token"], roles["sep_token"]
    ids = {token: token_id for token_id, token in enumerate(options["vocabulary"])}
    library = Tokenizer(models.WordPiece(ids, unk_token=roles["unk_token"], max_input_chars_per_word=100))
    library.normalizer = normalizers.BertNormalizer(
        handle_chinese_chars=options["split_chinese"],
        strip_accents=options["strip_accents"],
        lowercase=options["lowercase"],
    )
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.post_processor = processors.TemplateProcessing(
        single=[start, "$A", separator],
        pair=[start, "$A", separator, "$B:1", f"{separator}:1"],
        special_tokens=[(start, tokenizer.start_id), (separator, tokenizer.separator_id)],
    )
    library.decoder = decoders.WordPiece()
    for token in _added_tokens(tokenizer, roles):
        add = library.add_special_tokens if token.special else library.add_tokens
        add([tokenizers.AddedToken(**token.get_config())])
    return library.to_str(pretty=True)
