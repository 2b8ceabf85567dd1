"""Which model `serve` finds in a directory."""

from keras_bert_layers.cli.commands.serve import find_export


def test_where_the_model_is(saved_model, tmp_path, run, error_line):
    assert find_export(saved_model) == (saved_model, 1)
    for version in (2, 10):
        (tmp_path / "saved_model" / str(version)).mkdir(parents=True)
        (tmp_path / "saved_model" / str(version) / "saved_model.pb").touch()
    assert find_export(tmp_path) == (tmp_path / "saved_model" / "10", 10)
    assert run("serve", tmp_path / "absent") == 2
    assert "`serve`: DIR must hold a SavedModel" in error_line()
    assert run("serve", tmp_path) == 2
    assert "is not a complete SavedModel" in error_line()
