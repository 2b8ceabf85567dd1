import sys

import pytest

import keras_bert_layers as kbl
from keras_bert_layers.cli.models import load_saved_model
from keras_bert_layers.tasks import CombinedTasks, StaticBackbone


def test_without_tensorflow_text_the_error_states_the_cure(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorflow_text", None)
    with pytest.raises(ModuleNotFoundError, match=r"`serve`: .* needs tensorflow-text.* Serve it elsewhere\."):
        load_saved_model(tmp_path, owner="serve", cure="Serve it elsewhere.")


def test_an_empty_directory_is_not_a_saved_model(tmp_path):
    with pytest.raises(ValueError, match="`serve`: .* is not a complete SavedModel"):
        load_saved_model(tmp_path, owner="serve", cure="")


@pytest.fixture(scope="module")
def unnamed(tmp_path_factory):
    """A file of each task that has no name in `load_task`."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"a good bad film night".split()]
    preprocessor = kbl.BertPreprocessor(kbl.BertTokenizer(words), max_length=9)
    sizes = {"hidden_dim": 15, "num_layers": 1, "num_heads": 3, "intermediate_dim": 21}
    backbone = kbl.BertBackbone(kbl.BertConfig(vocabulary_size=len(words), **sizes))
    tasks = {
        "static": kbl.BertStaticEncoder(StaticBackbone(len(words), 4), preprocessor=preprocessor),
        "combined": CombinedTasks({"tone": kbl.BertClassifier(backbone, 2, preprocessor=preprocessor)}),
    }
    folder = tmp_path_factory.mktemp("unnamed")
    for name, task in tasks.items():
        task.save(folder / f"{name}.keras")
    return folder


@pytest.mark.parametrize(
    ("name", "kind", "outputs"),
    [
        ("static", "BertStaticEncoder", ["embedding"]),
        ("combined", "CombinedTasks", ["tone_label", "tone_probabilities"]),
    ],
)
def test_tasks_without_a_name_are_read(unnamed, run, answers, capsys, eagerly, name, kind, outputs):
    path = unnamed / f"{name}.keras"
    assert type(kbl.load_task(path)).__name__ == kind
    with pytest.raises(ValueError, match=rf"must hold a BertClassifier\. Received: a {kind}"):
        kbl.load_task(path, "classifier")
    assert run("inspect", path, "--json") == 0
    (facts,) = answers()
    assert [task["name"] for task in facts["tasks"]] == [kind, "BertClassifier"][: len(outputs)]
    assert (facts["config"]["vocabulary_size"], facts["tokenizer"]["max_length"]) == (10, 9)
    with eagerly():
        assert run("predict", path, "a good film") == 0
    assert list(answers()[0]) == outputs


def test_clusters_of_static_vectors(unnamed, run, answers, tmp_path):
    (tmp_path / "texts.txt").write_text("a good film\nbad\nnight\ngood\n")
    command = "cluster", tmp_path / "texts.txt", "--model"
    assert run(*command, unnamed / "static.keras") == 0
    assert run(*command, unnamed / "combined.keras") == 2
