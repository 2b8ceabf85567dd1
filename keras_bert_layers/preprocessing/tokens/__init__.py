"""Tokens: the data that flows between the steps of a tokenizer."""
