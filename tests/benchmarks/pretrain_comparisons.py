"""The pretraining comparisons of BERT's paper, small enough for two cores: directions, objectives, sizes of models.

    python tests/benchmarks/pretrain_comparisons.py --data ../shared/data --seeds 0 1 --output comparisons.json

Every run pretrains from scratch on 1,960 Wikipedia articles and differs from the base run in one thing. The base run:
2 blocks of width 128, a vocabulary of 400 pieces trained on the articles, rows of 64 tokens of one document (no pairs
of sentences), 30 % of the tokens masked by 80/10/10, 32 rows per step, AdamW with a peak rate of 2e-3 after a tenth of
the steps, then linear to zero, no dropout. Weights start with a standard deviation of one over the root of the width:
with BERT's 0.02, which is for a width of 768, a model this small attends evenly to all tokens for its first 2,000 steps
and learns their frequencies only; so it does with a vocabulary of words. The seed draws the weights, rows and masks.

Two numbers measure a run. `cloze`: how often the token with the highest score is the right one, at 15 % of the
positions of 40 articles that were held out; the same positions for every run, all of them `[MASK]` for models that read
masks. `sst2`: accuracy on SST-2's dev sentences after fine-tuning on 10,000 sentences of its training file, one epoch,
with the mean of the hidden states as the sentence. Results are written after every run; a run that is there is kept.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import os
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import _recipe as recipe
import numpy as np

HELD_OUT_ARTICLES = 40
MAX_LENGTH = 64
BATCH_SIZE = 32
VOCABULARY_SIZE = 400
RATE = 2e-3
SST2_SENTENCES = 10_000
MASKED, LEFT_TO_RIGHT, BOTH_DIRECTIONS = "masked", "left to right", "both directions, concatenated"


@dataclasses.dataclass(frozen=True)
class Run:
    """One pretraining; the defaults are the base run's."""

    objective: str = MASKED
    rule: str = "DocumentSentences"
    num_layers: int = 2
    hidden_dim: int = 128
    masking: tuple[tuple[str, Any], ...] = (("mask_selection_rate", 0.3),)
    steps_share: float = 1.0
    initializer_range: float | None = None  # one over the root of the width
    dropout: float = 0.0


def masked_by(**fields: Any) -> Run:
    """A run with other masks."""
    return Run(masking=tuple({"mask_selection_rate": 0.3, **fields}.items()))


#: Page: question -> name of the run -> what it is.
RUNS: dict[str, dict[str, Run]] = {
    "directions": {
        "masked, both sides in every block": Run(),
        "left to right": Run(objective=LEFT_TO_RIGHT),
        "both directions, concatenated at the end": Run(objective=BOTH_DIRECTIONS),
    },
    "pairs": {
        "none": Run(),
        "next sentence": Run(rule="NextSentence"),
        "sentence order": Run(rule="SentenceOrder"),
        "none, rows across documents": Run(rule="FullSentences"),
    },
    "sizes": {
        "1 block, width 128": Run(num_layers=1),
        "2 blocks, width 64": Run(hidden_dim=64),
        "2 blocks, width 128": Run(),
        "4 blocks, width 128": Run(num_layers=4),
        "2 blocks, width 256": Run(hidden_dim=256),
    },
    "masks": {
        "30 %, 80/10/10": Run(),
        "15 %": masked_by(mask_selection_rate=0.15),
        "40 %": masked_by(mask_selection_rate=0.4),
        "all [MASK]": masked_by(mask_token_rate=1.0, random_token_rate=0.0),
        "80 % [MASK], 20 % unchanged": masked_by(mask_token_rate=0.8, random_token_rate=0.0),
        "all random": masked_by(mask_token_rate=0.0, random_token_rate=1.0),
        "whole words": masked_by(whole_words=True),
        "spans of words": masked_by(whole_words=True, longest_span=10),
    },
    "start": {
        "weights of 0.088, no dropout": Run(),
        "weights of 0.02": Run(initializer_range=0.02),
        "dropout 0.1": Run(dropout=0.1),
    },
    "steps": {
        f"{objective}, {share:g} of the steps": Run(objective=objective, steps_share=share)
        for objective in (MASKED, LEFT_TO_RIGHT)
        for share in (0.25, 0.5, 1.0, 2.0)
    },
}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder with corpus/ and glue/")
    parser.add_argument("--output", type=Path, required=True, help="a JSON file; runs that it has are not repeated")
    parser.add_argument("--only", nargs="+", choices=list(RUNS), default=list(RUNS), help="some of the questions")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--table", action="store_true", help="print the results as Markdown, and run nothing")
    return parser.parse_args()


@functools.cache
def articles(data: Path) -> tuple[list[list[str]], list[list[str]]]:
    """The articles to train on, and those held out; the same for every seed."""
    from keras_bert_layers.data import read_documents

    documents = read_documents(data / "corpus" / "wikipedia-2006-articles.txt.gz").documents
    random.Random(0).shuffle(documents)
    return documents[HELD_OUT_ARTICLES:], documents[:HELD_OUT_ARTICLES]


@functools.cache
def preprocessor_of(data: Path) -> Any:
    """A vocabulary of the articles to train on."""
    import keras_bert_layers as kbl
    from keras_bert_layers.preprocessing import train_vocabulary

    sentences = (sentence for document in articles(data)[0] for sentence in document)
    tokenizer = kbl.BertTokenizer(train_vocabulary(sentences, VOCABULARY_SIZE))
    return kbl.BertPreprocessor(tokenizer, max_length=MAX_LENGTH)


@functools.cache
def documents_of(data: Path) -> tuple[Any, Any]:
    """The articles as tokens."""
    from keras_bert_layers.preprocessing import TokenDocuments

    tokenizer = preprocessor_of(data).tokenizer
    training, held_out = (TokenDocuments.from_text(part, tokenizer) for part in articles(data))
    return training, held_out


def batches(data: Path, run: Run, *, held_out: bool, seed: int, count: int) -> Iterator[Any]:
    """`(ids, labels, weights)` as the run's model trains on them, in epochs without end."""
    import tensorflow as tf

    from keras_bert_layers import preprocessing

    tokenizer = preprocessor_of(data).tokenizer
    # Cloze positions are the same for every run: one rule, one seed, all of them [MASK].
    rule = getattr(preprocessing, "DocumentSentences" if held_out else run.rule)()
    masking = {"mask_token_rate": 1.0, "random_token_rate": 0.0} if held_out else dict(run.masking)
    generator = tf.function(preprocessing.MaskedLMGenerator(tokenizer, seed=seed, **masking), autograph=False)
    given = 0
    for epoch in range(10**6):
        rows = rule.rows(documents_of(data)[held_out], tokenizer, max_length=MAX_LENGTH, seed=seed + epoch)
        order = np.random.default_rng(seed + epoch).permutation(len(rows))
        for begin in range(0, len(rows) - BATCH_SIZE + 1, BATCH_SIZE):
            if given == count:
                return
            given += 1
            part = rows.take(order[begin : begin + BATCH_SIZE])
            whole = part.padded(MAX_LENGTH, tokenizer.pad_id)
            ids, labels, weights = generator(whole)
            positions, labels, weights = (np.asarray(array) for array in (ids["mask_positions"], labels, weights))
            if run.objective == MASKED:
                inputs = {**{name: np.asarray(value) for name, value in ids.items()}, "mask_positions": positions}
            else:
                inputs, positions, labels, weights = _unmasked(whole, positions, labels, weights, run, held_out)
            if part.labels is None:
                yield inputs, labels, weights
            else:
                pairs = np.ones(len(part), "float32")
                outputs = {"masked_lm": labels, "next_sentence": part.labels}
                yield inputs, outputs, {"masked_lm": weights, "next_sentence": pairs}


def _unmasked(whole: Any, positions: Any, labels: Any, weights: Any, run: Run, held_out: bool) -> Any:
    """Inputs without masks: every token is predicted in training, those of the cloze when it is measured."""
    ids, mask = whole["token_ids"], whole["padding_mask"]
    inputs = dict(whole)
    if not held_out:
        positions = np.broadcast_to(np.arange(1, MAX_LENGTH - 1, dtype="int32"), (len(ids), MAX_LENGTH - 2))
        labels = ids[:, 1:-1]
        weights = (mask[:, 1:-1] * mask[:, 2:]).astype("float32")  # neither the first nor the last token
    if run.objective == LEFT_TO_RIGHT:
        return {**inputs, "mask_positions": np.maximum(positions - 1, 0)}, positions, labels, weights
    lengths = mask.sum(axis=1, keepdims=True)
    reverse = np.where(np.arange(MAX_LENGTH) < lengths, lengths - 1 - np.arange(MAX_LENGTH), np.arange(MAX_LENGTH))
    inputs["reversed_ids"] = np.take_along_axis(ids, reverse, axis=1).astype("int32")
    inputs["left"] = np.maximum(positions - 1, 0).astype("int32")
    inputs["right"] = np.maximum(lengths - 2 - positions, 0).astype("int32")
    return inputs, positions, labels, weights


def model_of(data: Path, run: Run) -> tuple[Any, Any]:
    """The model to pretrain, and a function from ids to hidden states."""
    import keras

    import keras_bert_layers as kbl
    from keras_bert_layers.layers import EncoderParts, MaskedLMHead

    config = kbl.BertConfig(
        vocabulary_size=preprocessor_of(data).tokenizer.vocabulary_size(),
        hidden_dim=run.hidden_dim,
        num_layers=run.num_layers,
        num_heads=run.hidden_dim // 64,
        intermediate_dim=4 * run.hidden_dim,
        max_sequence_length=MAX_LENGTH,
        initializer_range=run.initializer_range or run.hidden_dim**-0.5,
        dropout=run.dropout,
        attention_dropout=run.dropout,
    )
    parts = None if run.objective == MASKED else EncoderParts(causal=True)
    backbone = kbl.BertBackbone(config, parts=parts)
    if run.objective != BOTH_DIRECTIONS:
        kind = kbl.BertPretrainer if run.rule in ("NextSentence", "SentenceOrder") else kbl.BertMaskedLM
        return kind(backbone, preprocessor_of(data)), lambda ids: backbone(ids)["sequence_output"]
    # As ELMo, but trained together: each direction has its own encoder, and they meet before the head.
    backwards = kbl.BertBackbone(config, parts=EncoderParts(causal=True), name="backwards")
    names = (*backbone.input, "reversed_ids", "left", "right")
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in names}
    ids = {name: inputs[name] for name in backbone.input}
    states = (
        backbone(ids)["sequence_output"],
        backwards({**ids, "token_ids": inputs["reversed_ids"]})["sequence_output"],
    )
    joined = [
        keras.ops.take_along_axis(hidden, inputs[side][..., None], axis=1)
        for hidden, side in zip(states, ("left", "right"), strict=True)
    ]
    mixed = keras.layers.Dense(run.hidden_dim)(keras.ops.concatenate(joined, axis=-1))
    model = keras.Model(inputs, MaskedLMHead(backbone)(mixed))

    def hidden(ids: Any) -> Any:
        lengths = keras.ops.sum(ids["padding_mask"], axis=1, keepdims=True)
        places = keras.ops.arange(keras.ops.shape(ids["token_ids"])[1])[None]
        reverse = keras.ops.where(keras.ops.less(places, lengths), lengths - 1 - places, places)
        turned = {**ids, "token_ids": keras.ops.take_along_axis(ids["token_ids"], reverse, axis=1)}
        back = keras.ops.take_along_axis(backwards(turned)["sequence_output"], reverse[..., None], axis=1)
        return keras.ops.concatenate([backbone(ids)["sequence_output"], back], axis=-1)

    return model, hidden


def dataset(parts: Any, count: int) -> Any:
    """Batches as `fit` takes them."""
    import tensorflow as tf

    made = list(parts)
    spec = tf.nest.map_structure(lambda array: tf.TensorSpec([None, *array.shape[1:]], array.dtype), made[0])
    found = tf.data.Dataset.from_generator(lambda: iter(made), output_signature=spec)
    return found.apply(tf.data.experimental.assert_cardinality(len(made))).prefetch(2)


def compiled(model: Any, rate: float, steps: int) -> None:
    """With the recipe's optimizer, and with the losses and metrics of a masked language model."""
    import keras

    from keras_bert_layers.metrics import MaskedAccuracy, Perplexity
    from keras_bert_layers.optimizers import WarmupLinearDecay, adamw
    from keras_bert_layers.tasks import Task

    optimizer = adamw(WarmupLinearDecay(rate, steps, num_warmup_steps=steps // 10))
    if isinstance(model, Task):
        model.compile(optimizer)
    else:
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="mean_with_sample_weight")
        model.compile(optimizer, loss, weighted_metrics=[MaskedAccuracy(), Perplexity()], jit_compile=False)


def cloze(data: Path, run: Run, model: Any) -> float:
    """The share of the held-out masks that are filled right."""
    right, count = 0.0, 0.0
    plain = dataclasses.replace(run, rule="DocumentSentences")
    for ids, labels, weights in batches(data, plain, held_out=True, seed=10**6, count=100):
        logits = model.predict_on_batch(ids)
        logits = logits["masked_lm"] if isinstance(logits, dict) else logits
        right += float(((np.argmax(logits, axis=-1) == labels) * weights).sum())
        count += float(weights.sum())
    return right / count


def sst2(data: Path, hidden: Any, width: int, seed: int) -> float:
    """Dev accuracy after fine-tuning."""
    import keras
    from finetune_sst2 import read_sst2

    from keras_bert_layers.layers import SequencePooling

    names = ("token_ids", "segment_ids", "padding_mask")
    inputs = {name: keras.Input((MAX_LENGTH,), dtype="int32", name=name) for name in names}
    pooled = SequencePooling()(hidden(inputs), inputs["padding_mask"])
    model = keras.Model(inputs, keras.layers.Dense(2)(keras.layers.Dropout(0.1)(pooled)))
    texts, labels = read_sst2(data / "glue" / "SST-2" / "train.tsv.gz")
    chosen = random.Random(0).sample(range(len(texts)), SST2_SENTENCES)
    steps = -(-SST2_SENTENCES // BATCH_SIZE)
    compiled_for_classes(model, steps)
    ids = encoded(data, [texts[row] for row in chosen])
    model.fit(ids, np.array([labels[row] for row in chosen]), batch_size=BATCH_SIZE, verbose=0)
    texts, labels = read_sst2(data / "glue" / "SST-2" / "dev.tsv.gz")
    return float(model.evaluate(encoded(data, texts), np.array(labels), verbose=0, return_dict=True)["accuracy"])


def compiled_for_classes(model: Any, steps: int) -> None:
    """Fine-tuning's loss and rate."""
    import keras

    from keras_bert_layers.optimizers import WarmupLinearDecay, adamw

    rate = WarmupLinearDecay(1e-3, steps, num_warmup_steps=steps // 10)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(adamw(rate), loss, metrics=["accuracy"], jit_compile=False)


def encoded(data: Path, texts: list[str]) -> dict[str, np.ndarray]:
    """Texts as ids of one width."""
    preprocessor = preprocessor_of(data)
    full = type(preprocessor).from_config({**preprocessor.get_config(), "padding": "max_length"})
    return {name: np.asarray(value) for name, value in full(texts).items()}


def result_of(data: Path, run: Run, seed: int, steps: int) -> dict[str, float]:
    """Pretrains and measures."""
    import keras

    keras.utils.set_random_seed(seed)
    keras.backend.clear_session()
    model, hidden = model_of(data, run)
    compiled(model, RATE, steps)
    start = time.perf_counter()
    model.fit(dataset(batches(data, run, held_out=False, seed=seed, count=steps), steps), verbose=0)
    seconds = time.perf_counter() - start
    return {
        "cloze": round(cloze(data, run, model), 4),
        "sst2": round(sst2(data, hidden, run.hidden_dim, seed), 4),
        "parameters": model.count_params(),
        "steps": steps,
        "seconds": round(seconds, 1),
    }


def print_tables(known: dict[str, Any], options: argparse.Namespace) -> None:
    """One table per question, with means over the seeds."""
    for question in options.only:
        print(f"\n{question}\n\n| run | parameters | steps | cloze | SST-2 |\n|---|--:|--:|--:|--:|")
        for name, run in RUNS[question].items():
            keys = [key_of(run, seed, options.steps) for seed in options.seeds]
            found = [known[key] for key in keys if key in known]
            if found:
                cloze, sst2 = (f"{100 * np.mean([one[number] for one in found]):.1f}" for number in ("cloze", "sst2"))
                print(f"| {name} | {found[0]['parameters']:,} | {found[0]['steps']:,} | {cloze} | {sst2} |")


def key_of(run: Run, seed: int, steps: int) -> str:
    """The key that a result is stored under."""
    return json.dumps([dataclasses.asdict(run), seed, round(steps * run.steps_share)])


def main() -> None:
    options = parse_arguments()
    recipe.limit_threads()
    known: dict[str, Any] = json.loads(options.output.read_text()) if options.output.exists() else {}
    if options.table:
        print_tables(known, options)
        return
    for question in options.only:
        for name, run in RUNS[question].items():
            for seed in options.seeds:
                key, steps = key_of(run, seed, options.steps), round(options.steps * run.steps_share)
                if key not in known:
                    known[key] = {"question": question, "name": name, "seed": seed}
                    known[key] |= result_of(options.data, run, seed, steps)
                    with tempfile.NamedTemporaryFile("w", dir=options.output.absolute().parent, delete=False) as file:
                        json.dump(known, file, indent=1)
                    os.replace(file.name, options.output)
                recipe.say(f"{question}: {name}, seed {seed}: {known[key]}")


if __name__ == "__main__":
    main()
