"""Fine-tuning on SQuAD, ours beside transformers + torch: one recipe, the same weights, exact match and F1.

    python tests/benchmarks/finetune_squad.py --contender transformers --seed 0 --data ../shared/data/squad
    python tests/benchmarks/finetune_squad.py --contender keras_bert_layers --seed 0 --data ../shared/data/squad

The recipe, for both: v1.1-dev, trained on its first 20 articles (4,078 questions) and evaluated on its last 8 (2,339),
two epochs, batches of 16 questions, windows of 384 tokens that overlap by 128, peak rate 1e-4, answers of at most 30
tokens out of the 20 best starts and ends. It trains on the first answer whose place in the text is not ambiguous (the
first if all are); every gold answer counts in the evaluation. The rest of the recipe is in `_recipe.py`.
`transformers` needs the extra `peers`. Prints one JSON line.
"""

from __future__ import annotations

import collections
import gzip
import json
import re
import string
from pathlib import Path
from typing import Any, NamedTuple

import _recipe as recipe
import numpy as np

NUM_TRAINING_ARTICLES = 20
NUM_TEST_ARTICLES = 8
BATCH_SIZE = 16
NUM_EPOCHS = 2
PEAK_RATE = 1e-4
MAX_LENGTH = 384
STRIDE = 128
MAX_ANSWER_LENGTH = 30
NUM_BEST = 20


class Question(NamedTuple):
    """One question: its texts, the character where the answer to train on begins, and every gold answer."""

    question: str
    context: str
    answer: str
    answer_start: int
    gold_answers: tuple[str, ...]


def read_articles(path: Path) -> list[list[Question]]:
    """The questions of every article; an unanswerable one has the answer `""` at -1."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    return [
        [_question(paragraph["context"], entry) for paragraph in article["paragraphs"] for entry in paragraph["qas"]]
        for article in articles
    ]


def _question(context: str, entry: dict) -> Question:
    answers = entry["answers"]
    if not answers:
        return Question(entry["question"], context, "", -1, ())
    sure = [answer for answer in answers if not answer.get("answer_start_ambiguous", False)]
    chosen = (sure or answers)[0]
    texts = tuple(answer["text"] for answer in answers)
    return Question(entry["question"], context, chosen["text"], chosen["answer_start"], texts)


def normalize(text: str) -> list[str]:
    """The words that count: lower case, without punctuation and articles."""
    kept = "".join(character for character in text.lower() if character not in set(string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", kept).split()


def scores(prediction: str, gold_answers: tuple[str, ...]) -> tuple[float, float]:
    """Exact match and F1 of one answer, the best over the gold answers, by the formula of SQuAD's evaluation."""
    pairs = [_score(normalize(prediction), normalize(gold)) for gold in gold_answers or ("",)]
    return max(exact for exact, _ in pairs), max(f1 for _, f1 in pairs)


def _score(predicted: list[str], gold: list[str]) -> tuple[float, float]:
    exact = float(predicted == gold)
    if not predicted or not gold:
        return exact, exact
    common = sum((collections.Counter(predicted) & collections.Counter(gold)).values())
    return exact, 2 * common / (len(predicted) + len(gold))


def evaluate(predictions: list[str], questions: list[Question]) -> dict[str, float]:
    """Exact match and F1, means over the questions, in percent."""
    pairs = [scores(text, question.gold_answers) for text, question in zip(predictions, questions, strict=True)]
    exact, f1 = np.mean(pairs, axis=0) * 100
    return {"exact_match": round(float(exact), 2), "f1": round(float(f1), 2)}


def train_transformers(weights: str, train: list[Question], test: list[Question], seed: int) -> dict:
    """The recipe in transformers + torch."""
    import torch
    from transformers import AutoTokenizer, BertForQuestionAnswering

    tokenizer = AutoTokenizer.from_pretrained(weights)
    model = BertForQuestionAnswering.from_pretrained(weights)

    def encode(questions: list[Question]) -> Any:
        return tokenizer(
            [question.question for question in questions],
            [question.context for question in questions],
            truncation="only_second",
            max_length=MAX_LENGTH,
            stride=STRIDE,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            padding=True,
            return_tensors="pt",
        )

    def model_inputs(batch: Any) -> dict:
        return {name: batch[name] for name in ("input_ids", "token_type_ids", "attention_mask")}

    def loss_of(rows: list[int]) -> Any:
        questions = [train[row] for row in rows]
        batch = encode(questions)
        spans = [
            _token_span(batch, window, questions[source])
            for window, source in enumerate(batch["overflow_to_sample_mapping"].tolist())
        ]
        starts, ends = torch.tensor(spans).T
        return model(**model_inputs(batch), start_positions=starts, end_positions=ends).loss

    batches = batches_of(train, seed)
    trained = recipe.train_torch(model, model.qa_outputs, batches, loss_of, peak_rate=PEAK_RATE, seed=seed)
    predictions: list[str] = [""] * len(test)
    order = sorted(range(len(test)), key=lambda row: len(test[row].context))
    with torch.inference_mode():
        for positions in recipe.in_batches(len(test), BATCH_SIZE):
            rows = [order[position] for position in positions]
            batch = encode([test[row] for row in rows])
            outputs = model(**model_inputs(batch))
            best: dict[int, tuple[float, str]] = {}
            for window, source in enumerate(batch["overflow_to_sample_mapping"].tolist()):
                logits = outputs.start_logits[window].numpy(), outputs.end_logits[window].numpy()
                found = _best_answer(batch, window, logits, test[rows[source]].context)
                best[source] = max(best.get(source, found), found)
            for source, (_, text) in best.items():
                predictions[rows[source]] = text
    return {**evaluate(predictions, test), **trained}


def _token_span(batch: Any, window: int, question: Question) -> tuple[int, int]:
    """First and last token of the answer in one window; the first token, [CLS], if it is not all there."""
    begin, end = question.answer_start, question.answer_start + len(question.answer)
    inside = [
        token
        for token, (part, (start, stop)) in enumerate(
            zip(batch.sequence_ids(window), batch["offset_mapping"][window].tolist(), strict=True)
        )
        if part == 1 and start < end and stop > begin
    ]
    context = [token for token, part in enumerate(batch.sequence_ids(window)) if part == 1]
    offsets = batch["offset_mapping"][window]
    if not inside or offsets[context[0]][0] > begin or offsets[context[-1]][1] < end:
        return 0, 0
    return inside[0], inside[-1]


def _best_answer(batch: Any, window: int, logits: tuple[np.ndarray, np.ndarray], context: str) -> tuple[float, str]:
    """The best score of a start and an end among the best of each in the context, and its text."""
    offsets = batch["offset_mapping"][window].tolist()
    in_context = np.array([part == 1 for part in batch.sequence_ids(window)])
    starts, ends = (np.argsort(-side)[:NUM_BEST] for side in logits)
    candidates = [
        (float(logits[0][start] + logits[1][end]), context[offsets[start][0] : offsets[end][1]])
        for start in starts
        for end in ends
        if in_context[start] and in_context[end] and start <= end < start + MAX_ANSWER_LENGTH
    ]
    return max(candidates, default=(-np.inf, ""))


def batches_of(train: list[Question], seed: int, num_epochs: int = NUM_EPOCHS) -> list[list[int]]:
    """The rows of each step."""
    lengths = [len(question.question) + len(question.context) for question in train]
    return recipe.draw_batches(lengths, batch_size=BATCH_SIZE, num_epochs=num_epochs, seed=seed)


def train_keras_bert_layers(
    weights: str, train: list[Question], test: list[Question], seed: int, save: Path | None = None
) -> dict:
    """The recipe with this package."""
    backbone, preprocessor = recipe.load_ours(weights, seed)
    from keras_bert_layers import BertQuestionAnswerer
    from keras_bert_layers.preprocessing import SpanPreprocessor

    windows = SpanPreprocessor(preprocessor.tokenizer, MAX_LENGTH, stride=STRIDE)
    model = BertQuestionAnswerer(backbone, windows, max_answer_length=MAX_ANSWER_LENGTH, n_best=NUM_BEST)
    recipe.draw_dense(model.get_layer("span_head").dense, seed)
    trained = fit_questions(model, train, seed)
    predictions = model.answer(texts_of(test), batch_size=BATCH_SIZE * 4)["answer"].tolist()
    if save is not None:
        model.save(save)
        save.with_suffix(".answers.json").write_text(json.dumps(predictions), encoding="utf-8")
    return {**evaluate(predictions, test), **trained}


def fit_questions(model: Any, train: list[Question], seed: int, num_epochs: int = NUM_EPOCHS) -> dict:
    """Trains our model; a step is all windows of 16 questions, as in torch."""
    import tensorflow as tf

    batches = batches_of(train, seed, num_epochs)
    recipe.compile_ours(model, batches, peak_rate=PEAK_RATE)
    rows = [train[row] for batch in batches for row in batch]
    answers = [row.answer_start for row in rows], [row.answer for row in rows]
    dataset = tf.data.Dataset.from_tensor_slices((texts_of(rows), answers)).batch(BATCH_SIZE)
    return recipe.fit_ours(model, dataset, None, batches, batch_size=None)


def texts_of(questions: list[Question]) -> tuple[list[str], list[str]]:
    """What our model takes: a column of questions and one of contexts."""
    return [question.question for question in questions], [question.context for question in questions]


CONTENDERS = {"transformers": train_transformers, "keras_bert_layers": train_keras_bert_layers}


def main() -> None:
    """Reads the arguments, trains once, prints one JSON line."""
    parser = recipe.arguments(__doc__, list(CONTENDERS))
    parser.add_argument(
        "--save", type=Path, help="where our trained model goes, a .keras file; its answers go beside it"
    )
    options = parser.parse_args()
    articles = read_articles(options.data / "v1.1-dev.json.gz")
    train = [question for article in articles[:NUM_TRAINING_ARTICLES] for question in article][: options.rows]
    test = [question for article in articles[-NUM_TEST_ARTICLES:] for question in article]
    if options.rows:
        test = test[: options.rows]
    kwargs = {"save": options.save} if options.save else {}
    recipe.tell(options, CONTENDERS[options.contender](recipe.weights_of(options), train, test, options.seed, **kwargs))


if __name__ == "__main__":
    main()
