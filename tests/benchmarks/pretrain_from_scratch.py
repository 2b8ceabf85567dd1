"""BERT-tiny from scratch on the same batches and from the same weights, beside transformers on torch.

    python tests/benchmarks/pretrain_from_scratch.py --data ../shared/data/corpus

Trains a vocabulary on the articles, makes next-sentence rows, masks them, and hands the very same arrays to three
contenders in turns of 100 steps: `BertPretrainer.fit`; `BertForPreTraining` of transformers as it is, which computes
logits at every position; and the same model with logits at the masked positions alone, which is faster. All take the
initial weights of ours, AdamW (epsilon 1e-8, decay 0.01 except on biases and LayerNorm, norm clip 1.0), and a rate that
rises over a tenth of the steps and falls linearly to zero. Dropout is 0.1 and drawn by each library. Prints one JSON
line: mean losses of each tenth of the steps, seconds of each turn, and what the models give on held-out articles.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import _recipe as recipe
import numpy as np

CONTENDERS = ("ours", "transformers", "transformers_at_masks")
HELD_OUT_ARTICLES = 40
STEPS_A_TURN = 100
RATE = 1e-3
VOCABULARY_SIZE = 8_000

Batch = tuple[dict[str, np.ndarray], dict[str, np.ndarray], dict[str, np.ndarray]]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of wikipedia-2006-articles.txt.gz")
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--max-length", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def batches_of(documents: Any, preprocessor: Any, options: argparse.Namespace, count: int, seed: int) -> list[Batch]:
    """Masked batches as BertPretrainer trains on them, of as many epochs as it takes."""
    import keras_bert_layers as kbl
    from keras_bert_layers.preprocessing import MaskedLMGenerator, NextSentence
    from keras_bert_layers.preprocessing.rows.token_documents import TokenDocuments

    tokenizer: kbl.BertTokenizer = preprocessor.tokenizer
    tokens = TokenDocuments.from_text(documents, tokenizer)
    generator = MaskedLMGenerator(tokenizer, seed=seed)
    batches: list[Batch] = []
    for epoch in range(10**6):
        rows = NextSentence().rows(tokens, tokenizer, max_length=options.max_length, seed=seed + epoch)
        order = np.random.default_rng(seed + epoch).permutation(len(rows))
        for begin in range(0, len(rows) - options.batch_size + 1, options.batch_size):
            if len(batches) == count:
                return batches
            part = rows.take(order[begin : begin + options.batch_size])
            ids, labels, weights = generator(part.padded(options.max_length, tokenizer.pad_id))
            ids = {name: np.asarray(values) for name, values in ids.items()}
            is_next = {"masked_lm": np.asarray(labels), "next_sentence": part.labels}
            batches.append(
                (ids, is_next, {"masked_lm": np.asarray(weights), "next_sentence": np.ones(len(part), "f4")})
            )
    return batches


class Ours:
    """`BertPretrainer.fit` on a dataset of the batches."""

    def __init__(self, task: Any, options: argparse.Namespace):
        from keras_bert_layers.optimizers import WarmupLinearDecay, adamw

        task.compile(adamw(WarmupLinearDecay(RATE, options.steps, num_warmup_steps=options.steps // 10)))
        self.task = task
        self.threads = 2

    def train(self, batches: list[Batch]) -> list[float]:
        """One turn; the loss of each step."""
        import keras

        means: list[float] = []
        told = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: means.append(logs["loss"]))
        self.task.fit(_dataset(batches), verbose=0, callbacks=[told])
        return np.diff(np.array(means) * np.arange(1, len(means) + 1), prepend=0).tolist()

    def evaluate(self, batches: list[Batch]) -> dict[str, float]:
        """Accuracies and the perplexity."""
        return self.task.evaluate(_dataset(batches), verbose=0, return_dict=True)


def _dataset(batches: list[Batch]) -> Any:
    import tensorflow as tf

    spec = tf.nest.map_structure(lambda array: tf.TensorSpec([None, *array.shape[1:]], array.dtype), batches[0])
    return tf.data.Dataset.from_generator(lambda: iter(batches), output_signature=spec).apply(
        tf.data.experimental.assert_cardinality(len(batches))
    )


class Torch:
    """`BertForPreTraining` in a plain loop."""

    def __init__(self, directory: str, options: argparse.Namespace, *, at_masks: bool):
        import torch
        from transformers import BertForPreTraining, get_linear_schedule_with_warmup

        torch.manual_seed(options.seed)
        self.model = BertForPreTraining.from_pretrained(directory, attn_implementation="sdpa").train()
        self.at_masks = at_masks
        plain = [name.endswith("bias") or "LayerNorm" in name for name, _ in self.model.named_parameters()]
        parameters = list(zip(self.model.parameters(), plain, strict=True))
        groups = [
            {"params": [weight for weight, is_plain in parameters if not is_plain]},
            {"params": [weight for weight, is_plain in parameters if is_plain], "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=RATE, eps=1e-8, weight_decay=0.01)
        self.schedule = get_linear_schedule_with_warmup(self.optimizer, options.steps // 10, options.steps)

    def train(self, batches: list[Batch]) -> list[float]:
        """One turn; the loss of each step."""
        import torch

        losses = []
        for batch in batches:
            loss, *_ = self._run(batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.schedule.step()
            self.optimizer.zero_grad()
            losses.append(loss.item())
        return losses

    def _run(self, batch: Batch) -> tuple[Any, Any, Any]:
        import torch
        from torch.nn.functional import cross_entropy

        ids, labels, weights = batch
        positions, is_mask = torch.tensor(ids["mask_positions"]).long(), torch.tensor(weights["masked_lm"]) > 0
        tokens, is_random = torch.tensor(labels["masked_lm"]).long(), torch.tensor(labels["next_sentence"]).long()
        named = {"input_ids": "token_ids", "token_type_ids": "segment_ids", "attention_mask": "padding_mask"}
        inputs = {theirs: torch.tensor(ids[ours]).long() for theirs, ours in named.items()}
        if self.at_masks:
            hidden, pooled = self.model.bert(**inputs, return_dict=False)[:2]
            index = positions[..., None].expand(-1, -1, hidden.shape[-1])
            predictions, pairs = self.model.cls(hidden.gather(1, index)[is_mask], pooled)
            masked = cross_entropy(predictions, tokens[is_mask])
            return masked + cross_entropy(pairs, is_random), (predictions, tokens[is_mask]), (pairs, is_random)
        of_position = torch.full_like(inputs["input_ids"], -100)
        rows = torch.arange(len(positions))[:, None].expand_as(positions)
        of_position[rows[is_mask], positions[is_mask]] = tokens[is_mask]
        outputs = self.model(**inputs, labels=of_position, next_sentence_label=is_random)
        known = of_position != -100
        found = outputs.prediction_logits[known], of_position[known]
        return outputs.loss, found, (outputs.seq_relationship_logits, is_random)

    def evaluate(self, batches: list[Batch]) -> dict[str, float]:
        """Accuracies, and the mean loss."""
        import torch

        self.model.eval()
        right, count, pairs_right, pairs, losses = 0, 0, 0, 0, []
        with torch.no_grad():
            for batch in batches:
                loss, (predictions, tokens), (next_sentence, labels) = self._run(batch)
                right += int((predictions.argmax(-1) == tokens).sum())
                pairs_right += int((next_sentence.argmax(-1) == labels).sum())
                count, pairs = count + len(tokens), pairs + len(labels)
                losses.append(float(loss))
        self.model.train()
        return {
            "loss": float(np.mean(losses)),
            "masked_lm_accuracy": right / count,
            "next_sentence_accuracy": pairs_right / pairs,
        }


def unigram_accuracy(training: list[Batch], held_out: list[Batch]) -> float:
    """How often the token that is masked most often in training is the masked one."""
    counts = np.zeros(VOCABULARY_SIZE)
    for _, labels, weights in training:
        np.add.at(counts, labels["masked_lm"][weights["masked_lm"] > 0], 1)
    answers = np.concatenate([labels["masked_lm"][weights["masked_lm"] > 0] for _, labels, weights in held_out])
    return float(np.mean(answers == counts.argmax()))


def contenders_of(task: Any, options: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    """Each from the initial weights of ours."""
    import keras_bert_layers as kbl

    with tempfile.TemporaryDirectory() as directory:
        kbl.save_huggingface(task, directory)
        for name in options.contenders:
            if name == "ours":
                yield name, Ours(task, options)
            else:
                yield name, Torch(directory, options, at_masks=name.endswith("at_masks"))


def main() -> None:
    options = parse_arguments()
    os.environ.setdefault("OMP_NUM_THREADS", str(os.cpu_count()))
    recipe.limit_threads()
    import keras

    import keras_bert_layers as kbl
    from keras_bert_layers.data import read_documents
    from keras_bert_layers.preprocessing import train_vocabulary

    keras.utils.set_random_seed(options.seed)
    documents = read_documents(options.data / "wikipedia-2006-articles.txt.gz").documents
    random.Random(options.seed).shuffle(documents)
    held_out, training = documents[:HELD_OUT_ARTICLES], documents[HELD_OUT_ARTICLES:]
    vocabulary = train_vocabulary((sentence for document in training for sentence in document), VOCABULARY_SIZE)
    preprocessor = kbl.BertPreprocessor(kbl.BertTokenizer(vocabulary), max_length=options.max_length)
    config = kbl.BertConfig(
        vocabulary_size=VOCABULARY_SIZE, hidden_dim=128, num_layers=2, num_heads=2, intermediate_dim=512
    )
    task = kbl.BertPretrainer(kbl.BertBackbone(config), preprocessor, seed=options.seed)
    batches = batches_of(training, preprocessor, options, options.steps, options.seed)
    held_out_batches = batches_of(held_out, preprocessor, options, 40, options.seed + 10**6)
    recipe.say(f"{len(batches)} batches of {options.batch_size} rows")

    models = dict(contenders_of(task, options))
    losses: dict[str, list[float]] = {name: [] for name in models}
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for begin in range(0, options.steps, STEPS_A_TURN):
        for name, model in models.items():
            start = time.perf_counter()
            losses[name] += model.train(batches[begin : begin + STEPS_A_TURN])
            seconds[name].append(time.perf_counter() - start)
        recipe.say(f"step {begin + STEPS_A_TURN}: " + ", ".join(f"{n} {losses[n][-1]:.3f}" for n in models))
    recipe.tell(
        options,
        {
            name: {
                "loss_curve": recipe.curve(losses[name]),
                "last_100_losses": round(float(np.mean(losses[name][-100:])), 4),
                # Without the first turn, in which graphs are traced.
                "steps_per_second": round(STEPS_A_TURN / float(np.median(seconds[name][1:])), 2),
                "held_out": {
                    key: round(float(value), 4) for key, value in models[name].evaluate(held_out_batches).items()
                },
            }
            for name in models
        }
        | {"unigram_accuracy": round(unigram_accuracy(batches, held_out_batches), 4)},
    )


if __name__ == "__main__":
    main()
