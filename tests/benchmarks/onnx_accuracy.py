"""What 8 bits cost: scores of ONNX files in float32 and int8, on STS-B, SST-2, WNUT-17 and SQuAD.

    python tests/benchmarks/onnx_accuracy.py --contender sst2 --data ../shared/data

Contenders, all from all-MiniLM-L6-v2: `stsb`, 100 x Spearman's correlation on dev, without training; `sst2`, accuracy
on dev after the first 6,000 rows; `wnut`, F1 of entities with their bytes on dev, after all rows, three epochs;
`squad`, exact match and F1 on 600 questions of the last 8 articles of v1.1-dev, after 1,500 questions of the first 20,
two epochs. `--rows` changes the number of rows. Strings go into the file, and its answers are scored. Prints one JSON
line: per dtype the scores, the megabytes, the seconds of all answers, and the share of answers that are float32's.
"""

from __future__ import annotations

# Before TensorFlow: both contain RE2.
import onnxruntime
import onnxruntime_extensions

# isort: split
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _recipe as recipe
import finetune_squad as squad
import finetune_wnut as wnut
import numpy as np
import static_twin

BATCH_SIZE = 16
NUM_ROWS = {"stsb": 0, "sst2": 6000, "wnut": None, "squad": 1500}
NUM_TEST_QUESTIONS = 600

Answer = Callable[..., dict[str, np.ndarray]]


def main() -> None:
    """Trains one task, exports it twice, and scores the answers of both files."""
    options = recipe.arguments(__doc__, list(CONTENDERS)).parse_args()
    options.rows = options.rows or NUM_ROWS[options.contender]
    task, score = CONTENDERS[options.contender](options)
    result: dict[str, Any] = {}
    expected = None
    with tempfile.TemporaryDirectory() as folder:
        for dtype in ("float32", "int8"):
            path = task.export(Path(folder) / f"{dtype}.onnx", format="onnx", dtype=dtype)
            begun = time.perf_counter()
            scores, answers = score(answerer(path))
            seconds = round(time.perf_counter() - begun, 1)
            expected = answers if expected is None else expected
            result[dtype] = {**scores, "mb": round(path.stat().st_size / 1e6, 1), "answer_seconds": seconds}
            if answers:
                same = np.mean([a == b for a, b in zip(answers, expected, strict=True)])
                result[dtype]["same_answers"] = round(float(same), 4)
    recipe.tell(options, result)
    sys.stdout.flush()


def answerer(path: Path) -> Answer:
    """Answers of a file to columns of texts, rows first."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.register_custom_ops_library(onnxruntime_extensions.get_library_path())
    session = onnxruntime.InferenceSession(path, options)
    names = [output.name for output in session.get_outputs()]

    def answer(*columns: list[str]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {name: [] for name in names}
        for rows in recipe.in_batches(len(columns[0]), BATCH_SIZE):
            texts = [np.array([column[row] for row in rows], object) for column in columns]
            inputs = {put.name: values for put, values in zip(session.get_inputs(), texts, strict=True)}
            for name, values in zip(names, session.run(names, inputs), strict=True):
                found[name] += list(values)
        return found

    return answer


def stsb(options: Any) -> tuple[Any, Callable[[Answer], tuple[dict[str, float], list[Any]]]]:
    """Vectors of pairs."""
    import keras_bert_layers as kbl

    def score(answer: Answer) -> tuple[dict[str, float], list[Any]]:
        embed = lambda texts: np.array(answer(texts)["embedding"])  # noqa: E731
        return {"spearman": static_twin.spearman(embed, options.data / "glue", "dev")}, []

    return kbl.load_task(recipe.weights_of(options)), score


def sst2(options: Any) -> tuple[Any, Any]:
    """Labels of sentences."""
    import keras_bert_layers as kbl

    texts, labels = static_twin.sentences_of(options.data / "glue", "train")
    test, expected = static_twin.sentences_of(options.data / "glue", "dev")
    backbone, preprocessor = recipe.load_ours(recipe.weights_of(options), options.seed, max_length=128)
    task = kbl.BertClassifier(backbone, class_names=["0", "1"], preprocessor=preprocessor)
    train(task, list(texts)[: options.rows], labels[: options.rows], peak_rate=1e-4, num_epochs=1, seed=options.seed)

    def score(answer: Answer) -> tuple[dict[str, float], list[Any]]:
        found = answer(list(test))["label"]
        return {"accuracy": round(100 * float(np.mean(np.array(found, int) == expected)), 2)}, found

    return task, score


def ner(options: Any) -> tuple[Any, Any]:
    """Entities of sentences, of which words are joined by blanks."""
    import keras_bert_layers as kbl

    rows, test = (wnut.read_conll(options.data / "ner" / f"wnut17-{part}.conll") for part in ("train", "dev"))
    rows = rows[: options.rows]
    backbone, preprocessor = recipe.load_ours(recipe.weights_of(options), options.seed, max_length=128)
    task = kbl.BertTokenClassifier(backbone, wnut.names_of(rows), preprocessor=preprocessor)
    words, tags = (list(column) for column in zip(*rows, strict=True))
    train(task, words, tags, peak_rate=2e-4, num_epochs=3, seed=options.seed)
    gold = [{(tags[i][2:], *span) for i, span in entities(words, tags)} for words, tags in test]

    def score(answer: Answer) -> tuple[dict[str, float], list[Any]]:
        answers = answer([" ".join(words) for words, _ in test])
        columns = (answers[f"entity_{name}"] for name in ("label", "start", "end"))
        found = [{each for each in zip(*row, strict=True) if each[0]} for row in zip(*columns, strict=True)]
        num_right = sum(len(a & b) for a, b in zip(found, gold, strict=True))
        f1 = 2 * num_right / (sum(map(len, found)) + sum(map(len, gold)))
        return {"f1": round(100 * f1, 2)}, found

    return task, score


def entities(words: list[str], tags: list[str]) -> list[tuple[int, tuple[int, int]]]:
    """Each entity's first word, and its bytes in the words joined by blanks."""
    ends = np.cumsum([len(word.encode()) + 1 for word in words]) - 1
    found: list[tuple[int, tuple[int, int]]] = []
    for index, (word, tag) in enumerate(zip(words, tags, strict=True)):
        if tag.startswith("I-") and found and tags[index - 1] != "O":
            found[-1] = found[-1][0], (found[-1][1][0], int(ends[index]))
        elif tag != "O":
            found.append((index, (int(ends[index]) - len(word.encode()), int(ends[index]))))
    return found


def questions(options: Any) -> tuple[Any, Any]:
    """Answers in paragraphs."""
    import keras_bert_layers as kbl

    articles = squad.read_articles(options.data / "squad/v1.1-dev.json.gz")
    rows = [question for article in articles[: squad.NUM_TRAINING_ARTICLES] for question in article]
    test = [question for article in articles[-squad.NUM_TEST_ARTICLES :] for question in article]
    rows = random.Random(options.seed).sample(rows, options.rows)
    test = random.Random(0).sample(test, NUM_TEST_QUESTIONS)
    backbone, preprocessor = recipe.load_ours(recipe.weights_of(options), options.seed)
    windows = kbl.preprocessing.SpanPreprocessor(preprocessor.tokenizer, squad.MAX_LENGTH, stride=squad.STRIDE)
    task = kbl.BertQuestionAnswerer(backbone, windows, max_answer_length=squad.MAX_ANSWER_LENGTH)
    squad.fit_questions(task, rows, options.seed)

    def score(answer: Answer) -> tuple[dict[str, float], list[Any]]:
        found = answer(*squad.texts_of(test))["answer"]
        return squad.evaluate(found, test), found

    return task, score


def train(task: Any, x: list[Any], y: Any, *, peak_rate: float, num_epochs: int, seed: int) -> None:
    """Fine-tunes with the recipe of the comparisons."""
    lengths = [sum(map(len, each)) for each in x]
    batches = recipe.draw_batches(lengths, batch_size=BATCH_SIZE, num_epochs=num_epochs, seed=seed)
    recipe.compile_ours(task, batches, peak_rate=peak_rate)
    order = [row for batch in batches for row in batch]
    recipe.fit_ours(task, [x[row] for row in order], [y[row] for row in order], batches)


CONTENDERS = {"stsb": stsb, "sst2": sst2, "wnut": ner, "squad": questions}

if __name__ == "__main__":
    main()
