"""Checkpoints of HuggingFace transformers."""
