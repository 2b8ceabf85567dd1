"""Masked language modelling: train a BERT further on your own texts, without labels, and fill masks.

    python3 examples/fill_mask.py --smoke

trains a tiny model from scratch on a few built-in lines, without any download. On your own texts, from your own
BERT (a HuggingFace or sentence-transformers directory):

    python3 examples/fill_mask.py --weights path/to/bert --data mails.txt --ask "Please find the [MASK] attached."
    ... --documents                 lines are sentences, an empty line ends a document: read longer passages
    ... --whole-words               mask whole words, not pieces of them

The file has one text per line, and may be gzip. A tenth of the texts is held out for evaluation. The trained model is
saved as a `.keras` file and as a SavedModel that takes strings; its encoder can be used in the other tasks.
"""

from __future__ import annotations

import argparse
import itertools
import random
from pathlib import Path
from typing import Any

SEED = 7
HELD_OUT_SHARE = 0.1
# Some words are several tokens, and each row has two special tokens.
WORDS_A_TOKEN = 0.7
SMOKE_TEXTS = ["the cat sleeps on the roof", "the dog sleeps on the floor", "a cat sat on a warm roof"] * 8
SMOKE_QUESTIONS = ["the cat [MASK] on the roof", "a [MASK] sat on a warm [MASK]"]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a tiny model on built-in lines; takes seconds")
    parser.add_argument("--weights", help="a HuggingFace or sentence-transformers directory")
    parser.add_argument("--data", type=Path, help="a UTF-8 text file, plain or gzip")
    parser.add_argument("--documents", action="store_true", help="join the lines of a document into passages")
    parser.add_argument("--ask", nargs="+", metavar="TEXT", help="texts with [MASK] to fill after training")
    parser.add_argument("--whole-words", action="store_true", help="mask all pieces of a word together")
    parser.add_argument(
        "--max-length", type=int, default=128, help="tokens per text, longer texts are cut (default: 128)"
    )
    parser.add_argument("--epochs", type=int, default=1, help="passes over the texts (default: 1)")
    parser.add_argument("--batch-size", type=int, default=32, help="texts per step (default: 32)")
    parser.add_argument("--rate", type=float, default=1e-4, help="the highest learning rate (default: 1e-4)")
    parser.add_argument("--output", type=Path, default=Path("fill_mask_output"), help="where to write the models")
    arguments = parser.parse_args()
    if not arguments.smoke and (arguments.weights is None or arguments.data is None):
        parser.error("give --weights and --data, or --smoke")
    return arguments


def read_texts(arguments: argparse.Namespace) -> list[str]:
    """The lines of the user's file, or passages that about fill a row."""
    from keras_bert_layers.data import read_documents

    documents = read_documents(arguments.data).documents
    if not arguments.documents:
        return list(itertools.chain.from_iterable(documents))
    most_words = int(arguments.max_length * WORDS_A_TOKEN)
    return [passage for document in documents for passage in passages(document, most_words)]


def passages(sentences: list[str], most_words: int) -> list[str]:
    """Joins consecutive sentences into passages of at most `most_words` words."""
    joined: list[list[str]] = []
    for sentence in sentences:
        words = sentence.split()
        if joined and len(joined[-1]) + len(words) <= most_words:
            joined[-1] += words
        else:
            joined.append(words)
    return [" ".join(words) for words in joined]


def make_task(kbl: Any, arguments: argparse.Namespace, texts: list[str]) -> Any:
    """A masked language model from the user's weights, or a tiny one."""
    if arguments.smoke:
        from _smoke import small_parts

        backbone, preprocessor = small_parts(texts)
    else:
        backbone = kbl.load_backbone(arguments.weights)
        preprocessor = kbl.load_preprocessor(arguments.weights, max_length=arguments.max_length)
    return kbl.BertMaskedLM(backbone, preprocessor, whole_words=arguments.whole_words, seed=SEED)


def hidden_words(texts: list[str]) -> list[str]:
    """Texts with their longest word masked."""
    questions = []
    for text in texts:
        words = text.split()
        longest = max(range(len(words)), key=lambda index: len(words[index]))
        questions.append(" ".join([*words[:longest], "[MASK]", *words[longest + 1 :]]))
    return questions


def train(arguments: argparse.Namespace, output: Path) -> None:
    """Trains on nine tenths of the texts, evaluates on the rest, saves the model and fills masks."""
    import keras

    import keras_bert_layers as kbl
    from keras_bert_layers.optimizers import WarmupLinearDecay, adamw

    keras.utils.set_random_seed(SEED)
    texts = SMOKE_TEXTS if arguments.smoke else read_texts(arguments)
    random.Random(SEED).shuffle(texts)
    num_held_out = max(1, round(len(texts) * HELD_OUT_SHARE))
    held_out, training = texts[:num_held_out], texts[num_held_out:]
    task = make_task(kbl, arguments, texts)
    num_steps = -(-len(training) // arguments.batch_size) * arguments.epochs
    task.compile(adamw(WarmupLinearDecay(arguments.rate, num_steps, num_warmup_steps=num_steps // 10)))
    before = task.evaluate(held_out, verbose=0, return_dict=True)
    task.fit(training, batch_size=arguments.batch_size, epochs=arguments.epochs, verbose=0 if arguments.smoke else 1)
    after = task.evaluate(held_out, verbose=0, return_dict=True)
    print(
        f"{len(held_out)} held-out texts: perplexity {before['perplexity']:.1f} before and {after['perplexity']:.1f} "
        f"after, accuracy {before['accuracy']:.3f} and {after['accuracy']:.3f}"
    )
    task.save(output / "masked_lm.keras")
    task.export(output / "saved_model")
    print(f"wrote {output / 'masked_lm.keras'} and {output / 'saved_model'}")
    questions = SMOKE_QUESTIONS if arguments.smoke else arguments.ask or hidden_words(held_out[:3])
    answers = task.answer(questions)
    for text, tokens, probabilities in zip(questions, answers["token"], answers["probability"], strict=True):
        for best, shares in zip(tokens, probabilities, strict=True):
            if best[0]:
                guesses = ", ".join(f"{token} {share:.3f}" for token, share in zip(best, shares, strict=True))
                print(f"  {text!r}: {guesses}")


if __name__ == "__main__":
    from _main import main

    main(parse_arguments(), train)
