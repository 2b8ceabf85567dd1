"""Small models of byte-level BPE, and the tokenizers that transformers makes of them."""

import functools
import json
from pathlib import Path

import tokenizers

PAGES = Path(__file__).parents[2] / "docs" / "explanation"
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


@functools.cache
def train(vocabulary_size=900):
    """The tokens and the merges that the library learns of the pages of the documentation."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=SPECIAL,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [line for path in sorted(PAGES.glob("*.md")) for line in path.read_text(encoding="utf-8").splitlines()]
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return sorted(model["vocab"], key=model["vocab"].get), [tuple(pair) for pair in model["merges"]]


def modern():
    """The arguments of a tokenizer like ModernBERT's: NFC, other special tokens, and runs of spaces as tokens."""
    vocabulary, merges = train()
    special, added = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"], [" " * count for count in range(24, 1, -1)]
    added += ["[unused0]", "|||IP_ADDRESS|||"]
    roles = dict(zip(("unknown", "start", "separator", "pad", "mask"), special, strict=True))
    return {
        "vocabulary": [*vocabulary[len(SPECIAL) :], *added, *special],
        "merges": merges,
        "trim_offsets": False,
        "num_pair_separators": 1,
        "special_tokens": special,
        "stripping_tokens": ["[MASK]"],
        "added_tokens": added,
        "normalizer": "nfc",
        **{f"{role}_token": token for role, token in roles.items()},
    }


def modern_library(options):
    """The tokenizer of the library with these options, put together as in ModernBERT's `tokenizer.json`."""
    ids = {token: index for index, token in enumerate(options["vocabulary"])}
    own = len(ids) - len(options["added_tokens"]) - len(options["special_tokens"])
    model = tokenizers.models.BPE(vocab=dict(list(ids.items())[:own]), merges=options["merges"])
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = tokenizers.normalizers.NFC()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_tokens([tokenizers.AddedToken(token, normalized=True) for token in options["added_tokens"]])
    tokenizer.add_special_tokens(
        [
            tokenizers.AddedToken(token, lstrip=token == "[MASK]", normalized=False)
            for token in options["special_tokens"]
        ]
    )
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, ids[token]) for token in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def library(vocabulary, merges, *, add_prefix_space=False, trim_offsets=True):
    """The tokenizer of the library `tokenizers` as transformers 5 puts it together for RoBERTa."""
    ids = {token: index for index, token in enumerate(vocabulary)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=ids, merges=merges))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    special = [tokenizers.AddedToken(token, lstrip=token == "<mask>", normalized=False) for token in SPECIAL]
    tokenizer.add_special_tokens(special)
    ends = ("</s>", ids["</s>"]), ("<s>", ids["<s>"])
    tokenizer.post_processor = tokenizers.processors.RobertaProcessing(*ends, trim_offsets, add_prefix_space)
    return tokenizer
