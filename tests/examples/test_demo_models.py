"""`examples/_demo_models.py`: the models of the demo, and its messages for a visitor."""

from pathlib import Path

import numpy as np
import pytest

from keras_bert_layers import (
    BertClassifier,
    BertMaskedLM,
    BertPreprocessor,
    BertSentenceEncoder,
    BertTokenizer,
    save_huggingface,
)

FOLDER = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def demo(import_example):
    return import_example("_demo_models")


@pytest.fixture
def as_huggingface(vocabulary):
    """A preprocessor with the settings of a HuggingFace directory."""
    return BertPreprocessor(BertTokenizer(vocabulary, reference="huggingface"), max_length=9)


@pytest.fixture
def no_bundle(demo, monkeypatch):
    """As if all-MiniLM-L6-v2 were not installed."""
    monkeypatch.setattr(demo, "find_spec", lambda name: None)


class Vectors:
    """An encoder of three texts."""

    def predict(self, texts, verbose):
        """Vectors of two values per text, not normalized."""
        vectors = {"a cat": [3.0, 0.0], "a kitten": [2.0, 2.0], "stocks": [0.0, -5.0]}
        return np.array([vectors[text] for text in texts])


def test_what_is_missing_is_stated_in_one_sentence(demo, no_bundle, tmp_path):
    found = demo.find_models(tmp_path, {})
    assert list(found) == list(demo.SLOTS)
    for name, one in found.items():
        assert one.model is None
        path = tmp_path / demo.SLOTS[name].path
        assert one.reason == f"`{path}` does not exist yet. This command makes it: `{demo.SLOTS[name].command}`"


def test_the_paths_and_options_are_those_of_the_examples(demo):
    for slot in demo.SLOTS.values():
        words = slot.command.split()
        if words[1].startswith("examples/"):
            script = (FOLDER.parent / words[1]).read_text(encoding="utf-8")
            folder, file = slot.path.split("/")
            assert f'Path("{folder}")' in script
            assert f'output / "{file}"' in script
            assert all(f'"{word}"' in script for word in words if word.startswith("--"))


def test_comparing_works_without_any_example(demo, tmp_path, minilm):
    source = demo.SLOTS["encoder"]._replace(task="sentence_encoder")
    found = demo._find(source, tmp_path / source.path, None)
    assert Path(found.source) == minilm
    assert type(found.model) is BertSentenceEncoder
    assert found.reason == ""


def test_what_an_example_wrote_is_found(demo, no_bundle, tmp_path, backbone, preprocessor):
    path = tmp_path / demo.SLOTS["classifier"].path
    path.parent.mkdir()
    BertClassifier(backbone, class_names=["no", "yes"], preprocessor=preprocessor).save(path)
    found = demo.find_models(tmp_path, {"classifier": None})
    assert found["classifier"].model.class_names == ["no", "yes"]
    assert found["classifier"].source == str(path)
    assert found["mask"].model is None


def test_an_untrained_head_is_not_asked(demo, no_bundle, tmp_path, backbone, as_huggingface):
    save_huggingface(BertSentenceEncoder(backbone, preprocessor=as_huggingface), tmp_path / "plain")
    given = dict.fromkeys(demo.SLOTS, str(tmp_path / "plain"))
    found = demo.find_models(tmp_path, given)
    assert [name for name, one in found.items() if one.model] == ["encoder"]
    slot = demo.SLOTS["mask"]
    reason = f"`{tmp_path / 'plain'}` has no trained head for this task. This command trains one: `{slot.command}`"
    assert found["mask"].reason == reason


def test_a_trained_head_of_a_directory_is_asked(demo, tmp_path, backbone, as_huggingface):
    save_huggingface(BertMaskedLM(backbone, as_huggingface), tmp_path / "bert")
    slot = demo.SLOTS["mask"]
    assert type(demo._find(slot, tmp_path / slot.path, str(tmp_path / "bert")).model) is BertMaskedLM


def test_a_file_of_another_task_is_an_error(demo, tmp_path, backbone, preprocessor):
    BertMaskedLM(backbone, preprocessor).save(tmp_path / "other.keras")
    with pytest.raises(ValueError, match="must hold a BertClassifier. Received: a BertMaskedLM"):
        demo.find_models(tmp_path, {"classifier": str(tmp_path / "other.keras")})


def test_sentences_are_compared_by_direction(demo):
    assert demo.compare(Vectors(), " a cat ", "stocks\n\na kitten\n a cat") == [
        (1.0, "a cat"),
        (0.707, "a kitten"),
        (0.0, "stocks"),
    ]


@pytest.mark.parametrize(
    ("name", "texts", "message"),
    [
        ("fill_masks", [" "], "Write something into “Text” first."),
        ("fill_masks", ["a [mask]"], "Write [MASK], in capitals, where a word is missing."),
        ("find_entities", ["a" * 5001], "“Text” may have at most 5,000 characters here; it has 5,001."),
        ("answer_question", ["", "a"], "Write something into “Question” first."),
        ("answer_question", ["a", ""], "Write something into “Text” first."),
        ("compare", ["a", " \n "], "Write something into “Other sentences” first."),
        ("compare", ["a", "b\n" * 51], "Enter at most 50 other sentences here; there are 51."),
    ],
)
def test_messages_for_a_visitor(demo, name, texts, message):
    with pytest.raises(ValueError, match="here|first|capitals") as caught:
        getattr(demo, name)(None, *texts)
    assert str(caught.value) == message


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
def test_every_kind_of_classifier(demo, backbone, preprocessor):
    answers = {}
    for kind, options in {
        "names": {"class_names": ["no", "yes"]},
        "num_classes": {"num_classes": 3},
        "several": {"class_names": ["a", "b"], "problem_type": "multi_label_classification"},
        "score": {"problem_type": "regression"},
        "pairs": {"num_classes": 2, "pairs": True},
    }.items():
        model = BertClassifier(backbone, preprocessor=preprocessor, **options)
        answers[kind] = demo.classify(model, "a good film", "a bad film")
    assert {kind: list(answer) for kind, answer in answers.items() if kind != "score"} == {
        "names": ["no", "yes"],
        "num_classes": ["class 0", "class 1", "class 2"],
        "several": ["a", "b"],
        "pairs": ["class 0", "class 1"],
    }
    float(answers["score"])


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
def test_every_view_of_a_long_text(demo, backbone, preprocessor):
    model = BertSentenceEncoder(backbone, preprocessor=preprocessor)
    for view in demo.VIEWS:
        page = demo.explore(model, "good <b> film " * 40, view, 1, 2)
        assert "kbl-picture" in page
        assert "<b>" not in page
        assert page.count("good") < 80, "no more tokens than the model reads"
