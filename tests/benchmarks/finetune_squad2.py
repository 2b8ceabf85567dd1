"""SQuAD 2.0 with this package: questions that may have no answer, and the threshold at which none is given.

    python tests/benchmarks/finetune_squad.py --contender keras_bert_layers --data ../shared/data/squad --save v1.keras
    python tests/benchmarks/finetune_squad2.py --start v1.keras --data ../shared/data/squad

The model that `finetune_squad.py` has saved is trained further, with the same recipe, for one epoch on the first 6
articles of v2.0-dev, which are among those that it knows the answerable questions of. The threshold is tuned for F1 on
articles 24 to 27, and the last 8 articles are the test; no article of these is among the first 20 of v1.1-dev. Prints
one JSON line: exact match and F1 of all, of answerable and of unanswerable questions, without and with the threshold,
and the share of questions left unanswered beside the true one.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import _recipe as recipe
from finetune_squad import BATCH_SIZE, NUM_TEST_ARTICLES, Question, evaluate, fit_questions, read_articles, texts_of

NUM_TRAINING_ARTICLES = 6
TUNING_ARTICLES = slice(23, 27)


def measure(answers: list[str], questions: list[Question]) -> dict[str, float]:
    """Exact match and F1 by kind of question, and the share that is left unanswered, in percent."""
    result = dict(evaluate(answers, questions))
    for name, kind in (("answerable", True), ("unanswerable", False)):
        chosen = [place for place, question in enumerate(questions) if bool(question.gold_answers) == kind]
        of_kind = evaluate([answers[place] for place in chosen], [questions[place] for place in chosen])
        result[f"{name}_f1"] = of_kind["f1"]
    result["left_unanswered"] = round(100 * sum(not answer for answer in answers) / len(answers), 2)
    result["unanswerable_share"] = round(100 * sum(not row.gold_answers for row in questions) / len(questions), 2)
    return result


def main() -> None:
    """Reads the arguments, trains once, prints one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", type=Path, required=True, help="the .keras file of finetune_squad.py")
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds v2.0-dev.json.gz")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, help="the first rows of each part only, for a quick try")
    options = parser.parse_args()
    recipe.limit_threads()
    import keras

    import keras_bert_layers  # noqa: F401 - Keras finds the task's class by it

    keras.utils.set_random_seed(options.seed)
    articles = read_articles(options.data / "v2.0-dev.json.gz")
    parts = (articles[:NUM_TRAINING_ARTICLES], articles[TUNING_ARTICLES], articles[-NUM_TEST_ARTICLES:])
    train, tuning, test = ([row for article in part for row in article][: options.rows] for part in parts)
    model = keras.models.load_model(options.start)
    result: dict = {"training": fit_questions(model, train, options.seed, num_epochs=1)}
    best = model.best_answers(texts_of(test), batch_size=BATCH_SIZE * 4)
    result["always_answered"] = measure(best["answer"][:, 0].tolist(), test)
    gold = [list(question.gold_answers) for question in tuning]
    result["threshold"] = model.tune_threshold(texts_of(tuning), gold, batch_size=BATCH_SIZE * 4)
    answers = model.answer(texts_of(test), batch_size=BATCH_SIZE * 4)["answer"]
    result["with_threshold"] = measure(answers.tolist(), test)
    sys.stdout.write(json.dumps({"seed": options.seed, **result}) + "\n")


if __name__ == "__main__":
    main()
