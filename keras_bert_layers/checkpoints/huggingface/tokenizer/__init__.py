"""The tokenizer's files: which tokenizer they describe, its vocabulary, its special tokens; and their writer."""
