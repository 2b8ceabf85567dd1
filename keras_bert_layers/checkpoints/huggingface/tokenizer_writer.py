"""`write_huggingface_tokenizer`: writes the tokenizer files of transformers and of the library `tokenizers`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.files.json_file import write_json
from keras_bert_layers.checkpoints.files.vocabulary import vocabulary_bytes
from keras_bert_layers.checkpoints.huggingface.tokenizer import ROLES
from keras_bert_layers.preprocessing import BertTokenizer
from keras_bert_layers.preprocessing.vocabulary import SEPARATOR, SPECIAL_TOKENS, START, UNKNOWN


def write_huggingface_tokenizer(directory: Path, tokenizer: BertTokenizer, *, max_length: int) -> None:
    """Writes `tokenizer.json`, `tokenizer_config.json`, `special_tokens_map.json` and `vocab.txt`.

    The first is the whole tokenizer for the library `tokenizers`; the second gives transformers its class and the
    maximum length; the third is for releases of transformers before 5, the last for programs that read no other file. A
    tokenizer with `reference="huggingface"` gives the same ids there.

    Args:
        directory: the directory.
        tokenizer: the tokenizer.
        max_length: the maximum length in tokens, special tokens included.

    References:
        https://github.com/huggingface/tokenizers, `serialization` of the Rust crate.
    """
    options = tokenizer.get_config()
    vocabulary: list[str] = options["vocabulary"]
    roles = {role: token if token in vocabulary else None for role, token in ROLES.items()}
    (directory / "tokenizer.json").write_bytes(f"{_tokenizer_json(options)}\n".encode())
    settings = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": options["lowercase"],
        "strip_accents": options["strip_accents"],
        "tokenize_chinese_chars": options["split_chinese"],
        "model_max_length": max_length,
        **roles,
    }
    write_json(directory / "tokenizer_config.json", settings)
    write_json(directory / "special_tokens_map.json", {role: token for role, token in roles.items() if token})
    if not any(end in token for token in vocabulary for end in "\r\n"):  # such a token does not fit in a line
        (directory / "vocab.txt").write_bytes(vocabulary_bytes(vocabulary))


def _tokenizer_json(options: dict[str, Any]) -> str:
    """The content of `tokenizer.json`."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    ids = {token: token_id for token_id, token in enumerate(options["vocabulary"])}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token=UNKNOWN, max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(
        handle_chinese_chars=options["split_chinese"],
        strip_accents=options["strip_accents"],
        lowercase=options["lowercase"],
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{START} $A {SEPARATOR}",
        pair=f"{START} $A {SEPARATOR} $B:1 {SEPARATOR}:1",
        special_tokens=[(token, ids[token]) for token in (START, SEPARATOR)],
    )
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens([token for token in SPECIAL_TOKENS if token in ids])
    return tokenizer.to_str(pretty=True)
