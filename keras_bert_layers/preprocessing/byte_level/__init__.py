"""Byte-level BPE: the tokenizers of GPT-2's kind."""
