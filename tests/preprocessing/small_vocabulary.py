"""A small vocabulary for the tests of the tokenizer."""

TOKENS = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##aff", "##able", "!", "what", "?"),
    *("a", "b", "##b", "ab", "[", "]", "sep", "σ", "##σ", "##ς"),
]
