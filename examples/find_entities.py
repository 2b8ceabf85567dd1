"""Find entities in text, such as persons and places; with your own CoNLL files.

    python3 examples/find_entities.py --smoke

trains a tiny model from scratch on a few built-in sentences, without any download. On your own files, one
word and its tag per line, from your own BERT (a HuggingFace or sentence-transformers directory):

    python3 examples/find_entities.py --weights path/to/bert --train train.conll --dev dev.conll --crf
    ... --text "Marie Curie was born in Warsaw."    finds the entities of this text after training

Without `--dev` a tenth of the sentences is held out for evaluation. Tags may be BIO, BIOES, BILOU or IOB1. The trained
model is saved as a `.keras` file and as a SavedModel that takes raw text.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

SEED = 7
HELD_OUT_SHARE = 0.1
SMOKE_SENTENCES = [
    (["marie", "curie", "lived", "in", "paris"], ["B-person", "I-person", "O", "O", "B-place"]),
    (["she", "saw", "new", "york", "in", "may"], ["O", "O", "B-place", "I-place", "O", "O"]),
    (["it", "rained", "in", "paris"], ["O", "O", "O", "B-place"]),
    (["marie", "saw", "curie"], ["B-person", "O", "B-person"]),
    (["it", "rained"], ["O", "O"]),
] * 4
SMOKE_TEXT = "Marie Curie saw New York, and it rained in Paris."


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a tiny model on built-in sentences; takes seconds")
    parser.add_argument("--weights", help="a HuggingFace or sentence-transformers directory")
    parser.add_argument("--train", type=Path, help="a CoNLL file to train on")
    parser.add_argument("--dev", type=Path, help="a CoNLL file to evaluate on")
    parser.add_argument("--crf", action="store_true", help="score the tags of a sentence together")
    parser.add_argument("--text", action="append", help="raw text to find entities in; may be given several times")
    parser.add_argument("--max-length", type=int, default=128, help="tokens per window (default: 128)")
    parser.add_argument("--epochs", type=int, default=3, help="passes over the sentences (default: 3)")
    parser.add_argument("--batch-size", type=int, default=16, help="sentences per step (default: 16)")
    parser.add_argument("--rate", type=float, default=5e-5, help="the highest learning rate (default: 5e-5)")
    parser.add_argument("--output", type=Path, default=Path("find_entities_output"), help="where to write the models")
    arguments = parser.parse_args()
    if not arguments.smoke and (arguments.weights is None or arguments.train is None):
        parser.error("give --weights and --train, or --smoke")
    return arguments


def read_sentences(arguments: argparse.Namespace) -> tuple[list[Any], list[Any]]:
    """Training and evaluation sentences, as pairs of words and tags."""
    from keras_bert_layers.data import read_conll

    if arguments.smoke:
        train, dev = SMOKE_SENTENCES, None
    else:
        train = list(zip(*read_conll(arguments.train), strict=True))
        dev = None if arguments.dev is None else list(zip(*read_conll(arguments.dev), strict=True))
    if dev is None:
        train = random.Random(SEED).sample(train, len(train))
        num_held_out = max(1, round(len(train) * HELD_OUT_SHARE))
        dev, train = train[:num_held_out], train[num_held_out:]
    return train, dev


def make_classifier(kbl: Any, arguments: argparse.Namespace, sentences: list[Any]) -> Any:
    """A model from the user's weights, or a tiny one, for the labels of the sentences."""
    labels = sorted({tag[2:] for _, tags in sentences for tag in tags if tag != "O"})
    tag_names = ["O", *(prefix + label for label in labels for prefix in ("B-", "I-"))]
    if arguments.smoke:
        from _smoke import small_parts

        backbone, preprocessor = small_parts([SMOKE_TEXT, *(" ".join(words) for words, _ in sentences)])
    else:
        backbone = kbl.load_backbone(arguments.weights)
        preprocessor = kbl.load_preprocessor(arguments.weights, max_length=arguments.max_length)
    return kbl.BertTokenClassifier(backbone, tag_names, crf=arguments.crf, preprocessor=preprocessor)


def show_entities(classifier: Any, texts: list[str]) -> None:
    """Prints the entities of raw texts."""
    answers = classifier.answer(texts)
    for row, text in enumerate(texts):
        print(repr(text))
        columns = [answers[f"entity_{name}"][row] for name in ("label", "start", "end", "score", "text")]
        for label, start, end, score, entity in zip(*columns, strict=True):
            if label:
                print(f"  {label}, bytes {start} to {end}, {score:.2f}: {entity!r}")


def run(arguments: argparse.Namespace, output: Path) -> None:
    """Trains, evaluates, saves the model and runs it."""
    import keras

    import keras_bert_layers as kbl
    from keras_bert_layers.optimizers import WarmupLinearDecay, adamw

    keras.utils.set_random_seed(SEED)
    train, dev = read_sentences(arguments)
    batch_size = len(train) if arguments.smoke else arguments.batch_size
    classifier = make_classifier(kbl, arguments, train + dev)
    print(f"{len(train)} sentences to train on, {len(dev)} held out")
    words, tags = (list(column) for column in zip(*train, strict=True))
    num_steps = -(-len(train) // batch_size) * arguments.epochs
    classifier.compile(adamw(WarmupLinearDecay(arguments.rate, num_steps, num_warmup_steps=num_steps // 10)))
    classifier.fit(
        words,
        tags,
        batch_size=batch_size,
        epochs=arguments.epochs,
        verbose=0 if arguments.smoke else 1,
    )
    words, tags = (list(column) for column in zip(*dev, strict=True))
    result = classifier.evaluate(words, tags, batch_size=batch_size, verbose=0, return_dict=True)
    print(f"entity F1 on {len(dev)} held-out sentences: {result['f1']:.3f}")
    classifier.save(output / "token_classifier.keras")
    classifier.export(output / "saved_model")
    print(f"wrote {output / 'token_classifier.keras'} and {output / 'saved_model'}")
    default_texts = [SMOKE_TEXT] if arguments.smoke else [" ".join(row) for row in words[:3]]
    show_entities(classifier, arguments.text or default_texts)


if __name__ == "__main__":
    from _main import main

    main(parse_arguments(), run)
