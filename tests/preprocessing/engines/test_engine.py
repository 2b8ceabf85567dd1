"""The choice of the text engine, with and without tensorflow-text."""

import sys

import pytest

from keras_bert_layers.preprocessing.engines import engine, host

choose = engine.text_engine.__wrapped__


def test_tensorflow_text_where_it_is_installed():
    pytest.importorskip("tensorflow_text")
    chosen = choose()
    assert chosen.__name__.endswith(".tensorflow_text")
    assert chosen.IN_GRAPH


def test_the_host_where_it_is_not(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_text", None)
    assert choose() is host
    assert not host.IN_GRAPH


def test_a_broken_tensorflow_text_is_not_a_missing_one(monkeypatch):
    def broken(name):
        raise ModuleNotFoundError("No module named 'tf_keras'", name="tf_keras")

    monkeypatch.setattr(engine.importlib, "import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="tf_keras"):
        choose()
