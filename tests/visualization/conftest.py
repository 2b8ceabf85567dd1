"""One picture of each kind, made of arrays, with text that would break out of the page if it were not escaped."""

import numpy as np
import pytest

HOSTILE = "<script>alert('1')</script> \"quoted\" & $x^2$ \u202eשלום\u202c 😀 日本"
TOKENS = ["[CLS]", "<b>", "##ל", "$", "[SEP]"]


def pictures():
    """A maker for each kind of picture, by name; nothing is imported before one is asked for."""
    return {
        "architecture": architecture,
        "attention_grid": lambda kind: kind.AttentionGrid(TOKENS, np.full((2, 3, 5, 5), 0.2), title=HOSTILE),
        "attention_lines": lambda kind: kind.AttentionLines(TOKENS, np.full((5, 5), 0.2), title=HOSTILE),
        "attention_map": lambda kind: kind.AttentionMap(TOKENS, np.linspace(0, 1, 25).reshape(5, 5), note=HOSTILE),
        "attribution_picture": attribution_picture,
        "facts_picture": facts_picture,
        "hidden_state_map": lambda kind: kind.HiddenStateMap(
            [HOSTILE, *TOKENS], np.arange(18).reshape(6, 3) % 5, groups=[HOSTILE, "a", "b", "c", "d", "e"]
        ),
        "input_picture": lambda kind: kind.InputPicture(
            TOKENS,
            [0, 0, 0, 1, 1],
            dict.fromkeys(("token", "segment", "position"), np.linspace(-2, 1, 35).reshape(5, 7)),
        ),
        "learning_rate_curve": learning_rate_curve,
        "masked_tokens": lambda kind: kind.MaskedTokens(
            f"[MASK] {HOSTILE} [MASK]", [TOKENS, []], [[0.5, 0.3, 0.1, 0.01, 0.0001], []]
        ),
        "match_picture": match_picture,
        "probe_curve": probe_curve,
        "reliability_diagram": lambda kind: kind.ReliabilityDiagram(
            [0.9, 0.75, 0.7, 0.3], [True, True, False, False], title=HOSTILE
        ),
        "report_picture": report_picture,
        "text_highlights": lambda kind: kind.TextHighlights(
            HOSTILE, [(0, 8, "<label>", 0.9), (46, 52, "b", None)], title=HOSTILE
        ),
        "training_curves": lambda kind: kind.TrainingCurves(
            {"loss": [3.0, float("nan"), 0.5], "val_loss": [3.0, 2.0, 1.0], "<accuracy>": [0.1, 0.1, 0.1]},
            title=HOSTILE,
        ),
        "word_senses": lambda kind: kind.WordSenses(
            HOSTILE, [HOSTILE, "b", "<i>"], np.arange(24).reshape(3, 4, 2) % 5 - 1, senses=[HOSTILE, "<b>", "<b>"]
        ),
    }


def architecture(kind):
    import keras_bert_layers as kbl

    config = kbl.BertConfig(vocabulary_size=7, hidden_dim=6, num_layers=3, num_heads=2, intermediate_dim=10)
    return kind.Architecture(kbl.BertBackbone(config, name="bert_"), title=HOSTILE)


def match_picture(kind):
    from keras_bert_layers.tasks import TokenMatch

    size = len(HOSTILE.encode())
    found = [TokenMatch("<b>", "##<b>", 0.5, 0, 8), TokenMatch(HOSTILE, "日", -0.25, size - 3, size)]
    return kind.MatchPicture([TokenMatch("[CLS]", "[SEP]", 1.0, -1, -1), *found], HOSTILE, title=HOSTILE)


def attribution_picture(kind):
    from keras_bert_layers.tasks import Attribution

    scores, none = np.array([0.0, 1.5, -0.75, 0.01, 0.0]), np.full(5, -1)
    words = [HOSTILE, "<b>", "film"]
    found = Attribution(HOSTILE, TOKENS, scores, words, scores[1:4], none, none, 0.76, 1e-6, 32)
    empty = Attribution("<b>", TOKENS[:1], scores[:1], [], scores[:0], none[:1], none[:1], 0.0, 0.0, 32)
    return kind.AttributionPicture([found, empty], title=HOSTILE)


def facts_picture(kind):
    from keras_bert_layers.visualization.facts_picture import Fact, FactsPicture

    header, long = (HOSTILE, "b"), HOSTILE * 40
    facts = [Fact(HOSTILE, header, {"<b>": (1, "1"), long: (0, "<b>")}), Fact("next:", code=[HOSTILE, "b"])]
    facts += [Fact("a", header, values=[0.5, -2.0, 3.0]), Fact("b", header, values=[2, 9, 70, 3000], limit=8)]
    return FactsPicture([*facts, Fact("c", header, rows=[(1, long)])], title=HOSTILE)


def learning_rate_curve(kind):
    from keras_bert_layers.optimizers import LearningRateFinder

    finder = LearningRateFinder()
    finder.rates, finder.losses = [1e-5, 1e-4, 1e-3, 1e-2], [0.75, 0.625, 0.5, 40.0]
    return kind.LearningRateCurve(finder, title=HOSTILE)


def probe_curve(kind):
    from keras_bert_layers.tasks import ProbeReport

    return kind.ProbeCurve(ProbeReport(np.array([0.5, 0.75]), np.array([0.5, 0.25]), 0.5, 8, 4), title=HOSTILE)


def report_picture(kind):
    from keras_bert_layers.tasks import ClassificationError, ClassificationReport

    row = {"precision": 0.5, "recall": 1.0, "f1-score": 0.667, "support": 3.0}
    error = ClassificationError(7, HOSTILE, "<b>", HOSTILE, 0.9, 0.01, TOKENS, [0.0, 0.5, -0.3, 0.01, 0.0])
    names = ["<b>", HOSTILE]
    confusion = np.array([[2, 1], [0, 0]])
    return kind.ReportPicture(
        ClassificationReport(names, 3, 2 / 3, confusion, dict.fromkeys(names, row), [error], 0.25, 9), title=HOSTILE
    )


def pytest_generate_tests(metafunc):
    if "picture" in metafunc.fixturenames:
        metafunc.parametrize("picture", list(pictures()), indirect=True)


@pytest.fixture
def picture(request):
    from keras_bert_layers import visualization

    return pictures()[request.param](visualization)


@pytest.fixture
def same_picture(request):
    """The picture of `picture`, made once more."""
    from keras_bert_layers import visualization

    return pictures()[request.node.callspec.params["picture"]](visualization)


@pytest.fixture
def all_pictures():
    from keras_bert_layers import visualization

    return {name: make(visualization) for name, make in pictures().items()}
