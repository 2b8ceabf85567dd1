"""Graphs of tasks from parts: checks of backbones and preprocessors, heads and pooled vectors."""
