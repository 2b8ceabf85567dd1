"""Hides tensorflow-text from a process with this folder in PYTHONPATH, as on Windows, where it does not exist."""

raise ModuleNotFoundError("tensorflow-text is hidden by tests/without_tensorflow_text", name=__name__)
