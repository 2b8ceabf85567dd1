"""Preprocessors: text to model inputs."""
