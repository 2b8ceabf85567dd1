"""Tokens, and what flows between the steps of a tokenizer."""
