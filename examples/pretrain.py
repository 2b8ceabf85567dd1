"""Pretrain a BERT on your own documents: masked language modelling and next sentence prediction.

    python3 examples/pretrain.py --smoke

trains a tiny model on a few built-in documents, without any download. On your own documents, with one sentence per line
and an empty line between two documents, plain or gzip:

    python3 examples/pretrain.py --data corpus.txt --vocabulary vocab.txt --preset bert_uncased_L-4_H-256_A-4
    python3 examples/pretrain.py --data corpus.txt --weights path/to/bert            continue from a trained encoder
    ... --cased                                     a cased vocabulary
    ... --dtype mixed_bfloat16                      half of the memory, on hardware that supports it

Some of the documents are held out for evaluation. The program saves `pretrainer.keras`, to continue training, and
`backbone.keras`, the encoder for the other tasks: `keras.models.load_model("backbone.keras")`.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import random
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

SEED = 7
HELD_OUT_SHARE = 0.05
SMOKE_DOCUMENTS = [
    ["the cat sleeps on the roof", "it is warm there", "then it rains", "the cat comes down"],
    ["the train is late", "people wait on the platform", "then it comes"],
    ["bread needs an hour", "the dough must rise", "then it goes into the oven", "it smells good"],
] * 4


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a tiny model on built-in documents; takes seconds")
    parser.add_argument(
        "--data", type=Path, help="a UTF-8 text file: one sentence per line, empty lines between documents"
    )
    parser.add_argument("--weights", help="a HuggingFace or sentence-transformers directory to continue from")
    parser.add_argument("--vocabulary", type=Path, help="a vocab.txt, to start from random weights")
    parser.add_argument("--preset", default="bert_uncased_L-4_H-256_A-4", help="sizes of a new model")
    parser.add_argument("--cased", action="store_true", help="do not lowercase the text of a new model")
    parser.add_argument("--whole-words", action="store_true", help="mask all pieces of a word together")
    parser.add_argument("--max-length", type=int, default=128, help="tokens per pair (default: 128)")
    parser.add_argument("--epochs", type=int, default=10, help="passes over the documents (default: 10)")
    parser.add_argument("--batch-size", type=int, default=32, help="pairs per step (default: 32)")
    parser.add_argument("--rate", type=float, default=1e-4, help="the highest learning rate (default: 1e-4)")
    parser.add_argument("--dtype", help="a dtype policy such as mixed_bfloat16")
    parser.add_argument("--output", type=Path, default=Path("pretrain_output"), help="where to write the models")
    arguments = parser.parse_args()
    if not arguments.smoke and (
        arguments.data is None or (arguments.weights is None) == (arguments.vocabulary is None)
    ):
        parser.error("give --data and either --weights or --vocabulary, or --smoke")
    return arguments


def make_parts(kbl: Any, arguments: argparse.Namespace, documents: list[list[str]]) -> tuple[Any, Any]:
    """Backbone and preprocessor: from the user's weights, newly initialized with a preset's sizes, or tiny."""
    if arguments.smoke:
        from _smoke import small_parts

        return small_parts(sentence for document in documents for sentence in document)
    if arguments.weights is not None:
        preprocessor = kbl.load_preprocessor(arguments.weights, max_length=arguments.max_length)
        return kbl.load_backbone(arguments.weights), preprocessor
    tokenizer = kbl.BertTokenizer(arguments.vocabulary, lowercase=not arguments.cased)
    config = dataclasses.replace(
        kbl.presets.preset_config(arguments.preset), vocabulary_size=tokenizer.vocabulary_size()
    )
    return kbl.BertBackbone(config), kbl.BertPreprocessor(tokenizer, max_length=arguments.max_length)


def train(arguments: argparse.Namespace, output: Path) -> None:
    """Trains on most of the documents, evaluates on the rest, and saves the models."""
    import keras

    import keras_bert_layers as kbl
    from keras_bert_layers.data import read_documents
    from keras_bert_layers.optimizers import WarmupLinearDecay, adamw
    from keras_bert_layers.preprocessing import SentencePairs

    keras.utils.set_random_seed(SEED)
    if arguments.dtype:
        keras.config.set_dtype_policy(arguments.dtype)
    documents = SMOKE_DOCUMENTS if arguments.smoke else read_documents(arguments.data).documents
    random.Random(SEED).shuffle(documents)
    num_held_out = max(1, round(len(documents) * HELD_OUT_SHARE))
    held_out, training = documents[:num_held_out], documents[num_held_out:]
    backbone, preprocessor = make_parts(kbl, arguments, documents)
    pretrainer = kbl.BertPretrainer(backbone, preprocessor, whole_words=arguments.whole_words, seed=SEED)
    pairs = SentencePairs(training, preprocessor.tokenizer, max_length=preprocessor.max_length).draw(SEED)
    num_steps = -(-len(pairs) // arguments.batch_size) * arguments.epochs
    print(f"{len(training):,} documents, {len(pairs):,} pairs an epoch, {num_steps:,} steps")
    rate = WarmupLinearDecay(arguments.rate, num_steps, num_warmup_steps=num_steps // 10)
    pretrainer.compile(adamw(rate))
    pretrainer.fit(
        training,
        batch_size=arguments.batch_size,
        epochs=arguments.epochs,
        # After every epoch, so that no more than one is lost.
        callbacks=[keras.callbacks.ModelCheckpoint(output / "pretrainer.keras")],
        verbose=0 if arguments.smoke else 1,
    )
    result = pretrainer.evaluate(held_out, verbose=0, return_dict=True)
    shown = ("masked_lm_perplexity", "masked_lm_accuracy", "next_sentence_accuracy")
    print(f"{len(held_out)} held-out documents: " + ", ".join(f"{name} {result[name]:.3f}" for name in shown))
    pretrainer.backbone.save(output / "backbone.keras")
    print(f"wrote {output / 'pretrainer.keras'} and {output / 'backbone.keras'}")


if __name__ == "__main__":
    from _main import main

    main(parse_arguments(), train)
