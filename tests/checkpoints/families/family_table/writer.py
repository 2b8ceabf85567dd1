"""`write`: makes the directory of a family, with random weights."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from family_table import configs, vocabularies
from family_table.family import Family

# Tensors that transformers ties, and of which old files hold one.
_TIED = re.compile(
    r"cls\.predictions\.decoder\.(weight|bias)|lm_head\.decoder\.(weight|bias)|vocab_projector\.weight|^decoder\.weight"
)
SENTENCE_PIECES = ("xlm-r", "xlm-r-collapsed", "xlm-r-stripped", "camembert", "deberta")


def write(family: Family, directory: Path) -> Path:
    """Writes the files of the directory and returns it."""
    directory.mkdir()
    num_tokens = write_tokenizer(family, directory)
    config = family.config and dict(family.config)
    if config and config["vocab_size"] is None:
        config["vocab_size"] = num_tokens
    for path, values in {"config.json": config, **family.files}.items():
        (directory / path).parent.mkdir(exist_ok=True)
        content = json.dumps(values, ensure_ascii=False).replace('"-1":', f'"{num_tokens - 1}":')
        if values is not None:
            (directory / path).write_text(content, encoding="utf-8")
    if config and family.makes:
        write_weights(family, config, directory)
    return directory


def write_weights(family: Family, config: dict[str, Any], directory: Path) -> None:
    """Random weights by transformers' own class, under the names of the files on the hub."""
    import torch
    import transformers
    from safetensors.torch import save_file
    from transformers.core_model_loading import revert_weight_conversion

    generator = torch.Generator().manual_seed(zlib.crc32(family.name.encode()))

    def random(shape: Any, middle: float = 0.0) -> Any:
        return (torch.randn(tuple(shape), generator=generator) * 0.3 + middle).to(getattr(torch, family.dtype))

    def like(name: str, tensor: Any) -> Any:
        is_scale = name.lower().endswith(("layernorm.weight", "layer_norm.weight"))
        return random(tensor.shape, float(is_scale))  # norms about 1, so that activations leave what is nearly linear

    kind = getattr(transformers, family.makes)
    others = ("architectures", "auto_map", "model_type", "quantization_config")
    settings = {key: value for key, value in {**config, **family.theirs}.items() if key not in others}
    if family.refused:
        settings = {**configs.BERT, "vocab_size": config["vocab_size"]}
    model = kind(kind.config_class.from_dict(settings))
    tensors = {name: like(name, tensor) for name, tensor in model.state_dict().items() if tensor.is_floating_point()}
    if config["model_type"] in ("nomic_bert", "gte", "new", "jina_embeddings_v3"):
        tensors = revert_weight_conversion(model, tensors)  # to the names in files
    kept = {name: tensor for name, tensor in tensors.items() if family.has_decoder or not _TIED.search(name)}
    if family.has_decoder:  # a copy of the matrix it is tied to
        kept |= dict(_decoders(kept))
    tensors = {}
    for name, tensor in kept.items():
        if re.search(family.dropped, name):
            continue
        tensors[_renamed(family, name)] = tensor
    tensors |= {name: random(shape) for name, shape in family.extra.items()}
    if family.has_positions:
        prefix = next(name for name in tensors if "word_embeddings" in name).rpartition("word_embeddings")[0]
        length = config["max_position_embeddings"]
        tensors[f"{prefix}position_ids"] = torch.arange(length).reshape(1, length)
    if family.weights_file.endswith(".bin"):
        torch.save(tensors, directory / family.weights_file)
    else:
        save_file(tensors, directory / family.weights_file, metadata={"format": "pt"})
    for path in family.files:
        if path.endswith("_Dense/config.json"):
            sizes = family.files[path]
            dense = {"linear.weight": random((sizes["out_features"], sizes["in_features"]))}
            if sizes.get("bias", True):
                dense["linear.bias"] = random((sizes["out_features"],))
            save_file(dense, directory / Path(path).parent / "model.safetensors")


def _renamed(family: Family, name: str) -> str:
    for pattern, replacement in family.renames:
        name = re.sub(pattern, replacement, name)
    return name


def _decoders(tensors: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    embedding = next(tensor for name, tensor in tensors.items() if name.endswith("word_embeddings.weight"))
    for name in tensors:
        if _TIED.search(name):
            bias = re.sub(r"decoder\.bias$", "bias", name)
            yield name, embedding.clone() if name.endswith("weight") else tensors[bias].clone()


def write_tokenizer(family: Family, directory: Path) -> int:
    """The files of the tokenizer; gives the number of tokens."""
    if family.vocabulary is None:
        return 300
    if family.vocabulary == "byte-level":
        return _write_bytes(family, directory)
    if family.vocabulary == "modernbert":
        return _write_composed_bytes(directory)
    if family.vocabulary == "albert":
        return _write_albert_pieces(family, directory)
    if family.vocabulary == "deberta":
        return _write_deberta_pieces(family, directory)
    if family.vocabulary in SENTENCE_PIECES:
        return _write_sentence_pieces(family, directory)
    tokens = vocabularies.word_pieces(family.vocabulary)
    (directory / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
    if family.has_tokenizer_json:
        _save(_word_piece_tokenizer(family, tokens), directory)
    return len(tokens)


def _save(tokenizer: Any, directory: Path) -> None:
    tokenizer.save(str(directory / "tokenizer.json"))


def _word_piece_tokenizer(family: Family, tokens: list[str]) -> Any:
    """What transformers 4 saved for a `BertTokenizerFast`."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    config = family.files.get("tokenizer_config.json") or {}
    tokenizer = Tokenizer(models.WordPiece({token: index for index, token in enumerate(tokens)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(
        lowercase=config.get("do_lower_case", True),
        strip_accents=config.get("strip_accents"),
        handle_chinese_chars=config.get("tokenize_chinese_chars", True),
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    if family.vocabulary == "mpnet":
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
        tokenizer.add_special_tokens([*tokens[:4], AddedToken("<mask>", lstrip=True, special=True)])
        return tokenizer
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, tokens.index(token)) for token in ("[CLS]", "[SEP]")],
    )
    tokenizer.add_special_tokens([token for token in ("[PAD]", *vocabularies.SPECIAL) if token in tokens])
    return tokenizer


def _write_bytes(family: Family, directory: Path) -> int:
    """The byte-level BPE of RoBERTa: `vocab.json` and `merges.txt`, and the `tokenizer.json` of transformers 4."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *letters, "Ġt", "he", "<mask>"]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    (directory / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    (directory / "merges.txt").write_text("#version: 0.2\nĠ t\nh e\n", encoding="utf-8")
    if family.has_tokenizer_json:
        tokenizer = Tokenizer(models.BPE(vocabulary, [("Ġ", "t"), ("h", "e")]))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), True, False)
        special = [AddedToken(token, special=True, normalized=True) for token in tokens[:4]]
        tokenizer.add_special_tokens([*special, AddedToken("<mask>", lstrip=True, special=True)])
        _save(tokenizer, directory)
    return len(tokens)


def _write_composed_bytes(directory: Path) -> int:
    """The `tokenizer.json` of ModernBERT: NFC, runs of spaces as tokens, and special tokens after the others."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    tokens = ["|||IP_ADDRESS|||", "<|padding|>", *sorted(pre_tokenizers.ByteLevel.alphabet()), "Ġt", "he"]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocabulary, [("Ġ", "t"), ("h", "e")]))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
    own = ["|||IP_ADDRESS|||", "|||EMAIL_ADDRESS|||", *(" " * count for count in range(24, 1, -1))]
    added = [AddedToken(token, normalized=True) for token in own]
    added += [AddedToken(token, lstrip=token == "[MASK]", special=True, normalized=False) for token in special]
    added += [AddedToken(f"[unused{index}]", normalized=True) for index in range(4)]
    tokenizer.add_tokens(added)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")],
    )
    _save(tokenizer, directory)
    return tokenizer.get_vocab_size()


def _write_albert_pieces(family: Family, directory: Path) -> int:
    """`spiece.model`, and the `tokenizer.json` that transformers 4 saved for it."""
    from sentencepiece import sentencepiece_model_pb2
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    model = vocabularies.albert_pieces()
    (directory / "spiece.model").write_bytes(model)
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    if not family.has_tokenizer_json:
        return len(proto.pieces)
    # A comma after a digit is cut off by a low score.
    pieces = [(p.piece, p.score - 100 * bool(re.search(r"\d,$", p.piece))) for p in proto.pieces]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=1))
    steps = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD()]
    steps += [normalizers.StripAccents(), normalizers.Lowercase()]
    steps += [normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)]
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Replace(Regex(" {2,}"), " ")])
    metaspace = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace])
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    special = [AddedToken(token, special=True) for token in ("<pad>", "<unk>", "[CLS]", "[SEP]")]
    tokenizer.add_special_tokens([*special, AddedToken("[MASK]", lstrip=True, special=True, normalized=False)])
    _save(tokenizer, directory)
    return len(pieces)


def _write_sentence_pieces(family: Family, directory: Path) -> int:
    """`sentencepiece.bpe.model`, and the `tokenizer.json` that transformers 4 saved for it."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    model = vocabularies.sentence_pieces()
    (directory / "sentencepiece.bpe.model").write_bytes(model)
    reorder = vocabularies.camembert_pieces if family.vocabulary == "camembert" else vocabularies.roberta_pieces
    pieces, charsmap = reorder(model)
    if not family.has_tokenizer_json:
        return len(pieces)
    names = [name for name, _ in pieces]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3))
    metaspace = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Precompiled(charsmap), metaspace
    # The three forms that transformers' converter has had: words between whitespace until 2021, then these two.
    match family.vocabulary:
        case "xlm-r-collapsed":
            collapse = normalizers.Replace(Regex(" {2,}"), " ")
            tokenizer.normalizer = normalizers.Sequence([tokenizer.normalizer, collapse])
        case "xlm-r-stripped":
            more = normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "▁")
            tokenizer.normalizer = normalizers.Sequence([tokenizer.normalizer, *more])
        case _:
            tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace])
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[(token, names.index(token)) for token in ("<s>", "</s>")],
    )
    special = [AddedToken(token, special=True) for token in ("<s>", "<pad>", "</s>", "<unk>")]
    tokenizer.add_special_tokens([*special, AddedToken("<mask>", lstrip=True, special=True)])
    _save(tokenizer, directory)
    return len(pieces)


def _write_deberta_pieces(family: Family, directory: Path) -> int:
    """`spm.model`, and the `tokenizer.json` that transformers 4 saved for it, of which release 5 reads the pieces."""
    from sentencepiece import sentencepiece_model_pb2
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    model = vocabularies.sentence_pieces(of_deberta=True)
    (directory / "spm.model").write_bytes(model)
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    pieces = [(piece.piece, piece.score) for piece in proto.pieces]
    if family.has_tokenizer_json:
        tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3))
        charsmap = normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)
        parts = [normalizers.Strip(), charsmap, normalizers.Replace(Regex(" {2,}"), " ")]
        tokenizer.normalizer = normalizers.Sequence(parts)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace()])
        tokenizer.decoder = decoders.Metaspace()
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
        )
        tokenizer.add_special_tokens(["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"])
        _save(tokenizer, directory)
    return len(pieces) + 1
