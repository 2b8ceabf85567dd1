"""Engines of the tokenizers: tensorflow-text in graph, `tokenizers` on the host."""
