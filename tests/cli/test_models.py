import sys

import pytest

from keras_bert_layers.cli.models import load_saved_model


def test_without_tensorflow_text_the_error_states_the_cure(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorflow_text", None)
    with pytest.raises(ModuleNotFoundError, match=r"`serve`: .* needs tensorflow-text.* Serve it elsewhere\."):
        load_saved_model(tmp_path, owner="serve", cure="Serve it elsewhere.")


def test_an_empty_directory_is_not_a_saved_model(tmp_path):
    with pytest.raises(ValueError, match="`serve`: .* is not a complete SavedModel"):
        load_saved_model(tmp_path, owner="serve", cure="")
