"""Checkpoints of sentence-transformers: the modules around a HuggingFace checkpoint."""
