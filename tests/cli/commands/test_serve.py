"""Which model `serve` finds in a directory, and what runs before the first request."""

import shutil

import numpy as np

from keras_bert_layers.cli.commands import serve
from keras_bert_layers.cli.exported_models import find_export
from keras_bert_layers.cli.rest_model import SavedModelRestModel


def test_where_the_model_is(saved_model, tmp_path, run, error_line):
    assert find_export(saved_model, owner="serve") == (saved_model, 1)
    for version in (2, 10):
        (tmp_path / "saved_model" / str(version)).mkdir(parents=True)
        (tmp_path / "saved_model" / str(version) / "saved_model.pb").touch()
    assert find_export(tmp_path, owner="serve") == (tmp_path / "saved_model" / "10", 10)
    assert run("serve", tmp_path / "absent") == 2
    assert "`serve`: DIR must hold a SavedModel" in error_line()
    assert run("serve", tmp_path) == 2
    assert "is not a complete SavedModel" in error_line()


def test_the_model_is_warm_before_the_first_request(saved_model, tmp_path, run, monkeypatch):
    steps = []

    def step(self, signature, block):
        steps.append((signature, {name: np.asarray(values).shape for name, values in block.items()}))

    monkeypatch.setattr(SavedModelRestModel, "step", step)
    monkeypatch.setattr(serve, "serve_until_interrupted", lambda *_, **__: steps.append("listens"))
    assert run("serve", saved_model) == 0
    texts = [("serving_default", {"text": (1,)}), ("serving_default", {"text": (3,)})]
    assert [step for step in steps if step[0] == "serving_default"] == texts
    assert {name for name, _ in steps[:-1]} == {"serving_default", "tokenize", "token_ids"}
    assert steps.pop() == "listens"

    steps.clear()
    without = shutil.copytree(saved_model, tmp_path / "without", ignore=shutil.ignore_patterns("assets.extra"))
    assert run("serve", without) == 0
    assert ("serving_default", {"text": (1,)}) in steps
    assert ("token_ids", dict.fromkeys(("token_ids", "segment_ids", "padding_mask"), (1, 1))) in steps


def test_a_warm_up_that_fails_is_logged(saved_model, caplog, monkeypatch):
    model = SavedModelRestModel(saved_model, name="films", version=1)
    block = {"token_ids": np.full((1, 2), 9999), **{name: np.ones((1, 2)) for name in ("segment_ids", "padding_mask")}}
    wrong = {name: values.astype("int32") for name, values in block.items()}
    monkeypatch.setattr(model, "examples", lambda: [("token_ids", wrong)])
    model.warm_up()
    assert "warm-up of token_ids: " in caplog.text
