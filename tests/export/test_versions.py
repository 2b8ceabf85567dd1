import pytest

from keras_bert_layers.export import Signature, write_saved_model

SIGNATURE = Signature("serve", lambda x: {"y": x + 1}, {"x": ((None,), "float32")})


def write(path, version):
    return write_saved_model(path, [SIGNATURE], version=version)


def test_each_version_has_a_folder_of_its_own(tmp_path):
    model = tmp_path / "models" / "adder"
    assert [write(model, version) for version in (3, "next", 1)] == [model / "3", model / "4", model / "1"]
    assert sorted(path.name for path in model.iterdir()) == ["1", "3", "4"]


def test_a_version_never_changes(tmp_path):
    write(tmp_path, 7)
    with pytest.raises(
        FileExistsError, match=r"Received: version=7 of '.*', which exists\. The next free version is 8\."
    ):
        write(tmp_path, 7)
    assert [path.name for path in tmp_path.iterdir()] == ["7"]


def test_servers_ignore_the_folder_until_it_is_complete(tmp_path, monkeypatch):
    import tensorflow as tf

    def stopped(module, folder, **options):
        assert not any(path.name.isdecimal() for path in tmp_path.iterdir())
        raise KeyboardInterrupt

    monkeypatch.setattr(tf.saved_model, "save", stopped)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, "next")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("version", [0, -1])
def test_no_version(version, tmp_path):
    with pytest.raises(ValueError, match=f"`version` must be at least 1. Received: version={version}"):
        write(tmp_path, version)


@pytest.mark.parametrize("version", ["latest", 1.5, True])
def test_another_type(version, tmp_path):
    with pytest.raises(TypeError, match="`export`: `version` must be "):
        write(tmp_path, version)


def test_no_versions_inside_a_model(tmp_path):
    write_saved_model(tmp_path / "model", [SIGNATURE])
    with pytest.raises(FileExistsError, match="`path` must be a folder of versions where `version` is given"):
        write(tmp_path / "model", 1)
