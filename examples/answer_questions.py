"""Extractive question answering: train on built-in questions or on your own SQuAD files.

    python3 examples/answer_questions.py --smoke

trains a tiny model from scratch on a few built-in questions, without any download. On your own files, from your
own BERT (a HuggingFace or sentence-transformers directory):

    python3 examples/answer_questions.py --weights path/to/bert --train train-v1.1.json --dev dev-v1.1.json

The files may be gzip. If some questions of the training file have no answer, as in SQuAD 2.0, a fifth of the dev
questions sets the threshold of "no answer", and exact match and F1 are computed on the others. The trained model is
saved as a `.keras` file and as a SavedModel that takes strings.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any, NamedTuple

SEED = 7
TUNING_SHARE = 0.2
BATCH_SIZE = 16
SMOKE_CONTEXTS = [
    "the ferry left the harbour at noon because the old bridge was closed",
    "the baker put the dough into the oven and sang",
]
SMOKE_QUESTIONS = [
    ("what left at noon", 0, "the ferry"),
    ("when did the ferry leave", 0, "noon"),
    ("who sang", 1, "the baker"),
    ("where is the dough", 1, "the oven"),
    ("who left at noon", 1, ""),
]


class Questions(NamedTuple):
    """Columns of the same length; a question without an answer has empty lists."""

    questions: list[str]
    contexts: list[str]
    answer_starts: list[list[int]]
    answers: list[list[str]]

    def rows(self, indices: list[int]) -> Questions:
        """Some of the rows."""
        return Questions(*([column[index] for index in indices] for column in self))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a tiny model on built-in questions; takes seconds")
    parser.add_argument("--weights", help="a HuggingFace or sentence-transformers directory")
    parser.add_argument("--train", type=Path, help="a SQuAD json file to train on")
    parser.add_argument("--dev", type=Path, help="a SQuAD json file to evaluate on")
    parser.add_argument("--max-length", type=int, default=384, help="tokens per window (default: 384)")
    parser.add_argument("--stride", type=int, default=128, help="tokens that neighbouring windows share (default: 128)")
    parser.add_argument("--epochs", type=int, default=2, help="passes over the questions (default: 2)")
    parser.add_argument("--rate", type=float, default=5e-5, help="the highest learning rate (default: 5e-5)")
    parser.add_argument("--output", type=Path, default=Path("answers_output"), help="where to write the models")
    arguments = parser.parse_args()
    if not arguments.smoke and None in (arguments.weights, arguments.train, arguments.dev):
        parser.error("give --weights, --train and --dev, or --smoke")
    return arguments


def read_questions(path: Path) -> Questions:
    """The questions of a file; unusable ones are left out with a warning."""
    from keras_bert_layers.data import read_squad

    data = read_squad(path, on_error="skip")
    return Questions(data.questions, data.contexts, data.answer_starts, data.answers)


def smoke_questions() -> Questions:
    """The built-in questions."""
    contexts = [SMOKE_CONTEXTS[index] for _, index, _ in SMOKE_QUESTIONS]
    answers = [[answer] if answer else [] for *_, answer in SMOKE_QUESTIONS]
    starts = [[context.index(answer) for answer in row] for context, row in zip(contexts, answers, strict=True)]
    return Questions([question for question, *_ in SMOKE_QUESTIONS], contexts, starts, answers)


def make_answerer(kbl: Any, arguments: argparse.Namespace) -> Any:
    """A model from the user's weights, or a tiny one."""
    if arguments.smoke:
        from _smoke import small_parts

        backbone, preprocessor = small_parts([*SMOKE_CONTEXTS, *(question for question, *_ in SMOKE_QUESTIONS)])
        windows = kbl.preprocessing.SpanPreprocessor(preprocessor.tokenizer, max_length=16, stride=4)
        return kbl.BertQuestionAnswerer(backbone, windows)
    tokenizer = kbl.load_tokenizer(arguments.weights)
    windows = kbl.preprocessing.SpanPreprocessor(tokenizer, max_length=arguments.max_length, stride=arguments.stride)
    return kbl.BertQuestionAnswerer(kbl.load_backbone(arguments.weights), windows)


def train(answerer: Any, data: Questions, arguments: argparse.Namespace) -> None:
    """Trains with a learning rate schedule that counts the windows of all contexts."""
    from keras_bert_layers.optimizers import WarmupLinearDecay, adamw

    num_windows = int(sum(answerer.preprocessor.num_windows((data.questions, data.contexts)).numpy()))
    num_steps = -(-num_windows // BATCH_SIZE) * arguments.epochs
    answerer.compile(adamw(WarmupLinearDecay(arguments.rate, num_steps, num_warmup_steps=num_steps // 10)))
    print(f"{len(data.questions):,} questions to train on, in {num_windows:,} windows")
    answerer.fit(
        (data.questions, data.contexts),
        (data.answer_starts, data.answers),
        batch_size=BATCH_SIZE,
        epochs=arguments.epochs,
        verbose=0 if arguments.smoke else 1,
    )


def tune(answerer: Any, data: Questions) -> Questions:
    """Tunes the threshold of "no answer" on a share of the rows, and returns the others."""
    indices = random.Random(SEED).sample(range(len(data.questions)), len(data.questions))
    num_tuned = max(1, round(len(indices) * TUNING_SHARE))
    tuning = data.rows(indices[:num_tuned])
    threshold = answerer.tune_threshold((tuning.questions, tuning.contexts), tuning.answers)
    print(f"threshold of no answer, found on {num_tuned:,} questions: {threshold:.2f}")
    return data.rows(indices[num_tuned:])


def measure(answerer: Any, data: Questions) -> None:
    """Prints exact match and F1, and a few answers."""
    from keras_bert_layers.metrics import squad_scores

    answers = answerer.answer((data.questions, data.contexts), batch_size=128)
    for name, value in squad_scores(answers["answer"], data.answers).items():
        print(f"{name} on {len(data.questions):,} questions: {value:.1f}")
    for row, question in enumerate(data.questions[:3]):
        print(f"  {question}: {answers['answer'][row]!r} ({answers['score'][row]:.2f})")


def run(arguments: argparse.Namespace, output: Path) -> None:
    """Trains, evaluates and saves the model."""
    import keras

    import keras_bert_layers as kbl

    keras.utils.set_random_seed(SEED)
    data = smoke_questions() if arguments.smoke else read_questions(arguments.train)
    dev = data if arguments.smoke else read_questions(arguments.dev)
    answerer = make_answerer(kbl, arguments)
    train(answerer, data, arguments)
    if not all(data.answers):
        dev = tune(answerer, dev)
    measure(answerer, dev)
    answerer.save(output / "answerer.keras")
    answerer.export(output / "saved_model")
    print(f"wrote {output / 'answerer.keras'} and {output / 'saved_model'}")


if __name__ == "__main__":
    from _main import main

    main(parse_arguments(), run)
