"""Pretrain a BERT on your own text: vocabulary, shards, training, checkpoints, and a fill-mask model to serve.

    python3 examples/pretrain.py --smoke

trains a tiny model on a few built-in documents, without any download. On your own files (`.txt`, `.jsonl`, also with
`.gz`, or `.parquet`):

    python3 examples/pretrain.py --data "corpus/*.jsonl.gz" --split-sentences en
    python3 examples/pretrain.py --data corpus.txt --separated-by blank_lines       one sentence per line
    ... --held-out others.txt                       measured at the end: accuracies and the perplexity
    ... --weights path/to/bert                      continue from a trained encoder, with its vocabulary
    ... --vocabulary vocab.txt [--cased]            a vocabulary that you have
    ... --dtype mixed_bfloat16                      half of the memory, on hardware that supports it

With KERAS_BACKEND=jax it trains on all accelerators of the machine, or of several machines: start it on each, with

    ... --coordinator 10.0.0.1:1234 --num-processes 2 --process-id 0      1 on the second machine; --output is shared

Run the same command again after an interruption: complete shards are kept, and training resumes from the last backup to
the same weights. In `--output`, the program writes

    vocab.txt  shards/  log.csv  tensorboard/       the data, and how training went
    pretrainer.keras                                with the optimizer's state, to continue
    huggingface/  google/  kerashub/                for transformers, for google-research/bert, for KerasHub
    fill_mask/                                      a SavedModel: texts with [MASK] in, tokens out
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
from pathlib import Path
from typing import Any

from keras_bert_layers.cli.processes import add_process_arguments, export, files_of_first, join_processes

SEED = 7
SMOKE_TEXT = """the cat sleeps on the roof\nit is warm there\nthen it rains\nthe cat comes down\n
the train is late\npeople wait on the platform\nthen it comes\n
bread needs an hour\nthe dough must rise\nthen it goes into the oven\nit smells good\n\n"""


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a tiny model on built-in documents; takes seconds")
    parser.add_argument("--data", nargs="+", help="files, or patterns of files")
    parser.add_argument("--held-out", nargs="+", help="files to evaluate on")
    parser.add_argument("--separated-by", choices=["lines", "blank_lines"], help="what is between documents in .txt")
    parser.add_argument("--split-sentences", metavar="LANGUAGE", help="split lines into sentences, such as en")
    parser.add_argument("--weights", help="a checkpoint's directory to continue from")
    parser.add_argument("--vocabulary", type=Path, help="a vocab.txt; default: train one on the text")
    parser.add_argument("--vocabulary-size", type=int, default=30522, help="tokens of a new vocabulary")
    parser.add_argument("--cased", action="store_true", help="do not lowercase the text of a new model")
    parser.add_argument("--preset", default="bert_uncased_L-4_H-256_A-4", help="sizes of a new model")
    parser.add_argument("--max-length", type=int, default=128, help="tokens per row (default: 128)")
    parser.add_argument("--duplicates", type=int, default=5, help="epochs with other pairs, written to the shards")
    parser.add_argument("--whole-words", action="store_true", help="mask all pieces of a word together")
    parser.add_argument("--mask-rate", type=float, default=0.15, help="the share of tokens to mask (default: 0.15)")
    parser.add_argument("--epochs", type=int, default=10, help="passes over the documents (default: 10)")
    parser.add_argument("--batch-size", type=int, default=32, help="rows per step (default: 32)")
    parser.add_argument("--rate", type=float, default=1e-4, help="the highest learning rate (default: 1e-4)")
    parser.add_argument("--backup-steps", type=int, default=1000, help="steps between two backups (default: 1000)")
    parser.add_argument("--dtype", help="a dtype policy such as mixed_bfloat16")
    parser.add_argument("--output", type=Path, default=Path("pretrain_output"), help="where to write the results")
    add_process_arguments(parser)
    arguments = parser.parse_args()
    if arguments.smoke == (arguments.data is not None):
        parser.error("give --data or --smoke")
    if arguments.weights is not None and arguments.vocabulary is not None:
        parser.error("give --weights or --vocabulary: a trained encoder has its vocabulary")
    return arguments


def files_of(arguments: argparse.Namespace, names: Any, output: Path) -> Any:
    """The documents; of `--smoke`, written to a file first."""
    from keras_bert_layers.data import DocumentFiles

    if arguments.smoke:
        names, arguments.separated_by = output / "corpus.txt", "blank_lines"
        names.write_text(SMOKE_TEXT * 4, encoding="utf-8")
    return DocumentFiles(
        names, separated_by=arguments.separated_by, split_sentences=arguments.split_sentences, on_error="skip"
    )


def write_vocabulary(arguments: argparse.Namespace, files: Any, output: Path) -> Path:
    """The vocabulary of a new model: the user's, or one that fits the text."""
    from keras_bert_layers.preprocessing import train_vocabulary

    vocabulary: Path = arguments.vocabulary or output / "vocab.txt"
    if not vocabulary.is_file():
        sentences = (sentence for document in files for sentence in document)
        size = 160 if arguments.smoke else arguments.vocabulary_size
        tokens = train_vocabulary(sentences, size, lowercase=not arguments.cased)
        vocabulary.write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
    return vocabulary


def make_parts(kbl: Any, arguments: argparse.Namespace, vocabulary: Path | None) -> tuple[Any, Any]:
    """Backbone and preprocessor: of the user's weights, or new ones."""
    if vocabulary is None:
        preprocessor = kbl.load_preprocessor(arguments.weights, max_length=arguments.max_length)
        return kbl.load_backbone(arguments.weights), preprocessor
    tokenizer = kbl.BertTokenizer(vocabulary, lowercase=not arguments.cased)
    config = kbl.presets.preset_config("bert_uncased_L-2_H-128_A-2" if arguments.smoke else arguments.preset)
    config = dataclasses.replace(config, vocabulary_size=tokenizer.vocabulary_size())
    return kbl.BertBackbone(config), kbl.BertPreprocessor(tokenizer, max_length=arguments.max_length)


def train(arguments: argparse.Namespace, output: Path) -> None:
    """From text to models in one go; what an earlier run has finished is kept."""
    import keras

    import keras_bert_layers as kbl
    from keras_bert_layers.checkpoints import save_kerashub
    from keras_bert_layers.data import TextCorpus, write_shards
    from keras_bert_layers.optimizers import OptimizerLogger, WarmupLinearDecay, google_adamw
    from keras_bert_layers.preprocessing import NextSentence

    keras.utils.set_random_seed(SEED)
    is_first = join_processes(arguments)
    in_turn = kbl.distribution.first_process_first
    if arguments.dtype:
        keras.config.set_dtype_policy(arguments.dtype)
    files = files_of(arguments, arguments.data, output)
    vocabulary = None if arguments.weights else in_turn(lambda: write_vocabulary(arguments, files, output))
    backbone, preprocessor = make_parts(kbl, arguments, vocabulary)

    def corpus(documents: Any) -> Any:
        rule, length = NextSentence(), arguments.max_length
        return TextCorpus(documents, preprocessor.tokenizer, rule=rule, max_length=length, seed=SEED)

    num_duplicates = min(arguments.duplicates, arguments.epochs)
    shards = in_turn(lambda: write_shards(corpus(files), output / "shards", num_duplicates=num_duplicates))
    num_rows = min(shards.num_rows)
    num_steps = -(-num_rows // arguments.batch_size) * arguments.epochs
    print(f"{shards.manifest['documents']:,} documents, {num_rows:,} rows per epoch, {num_steps:,} steps")

    pretrainer = kbl.BertPretrainer(
        backbone, preprocessor, whole_words=arguments.whole_words, mask_selection_rate=arguments.mask_rate, seed=SEED
    )
    rate = WarmupLinearDecay(arguments.rate, num_steps, num_warmup_steps=num_steps // 10)
    pretrainer.compile(google_adamw(rate))
    backup = kbl.distribution.Backup if keras.backend.backend() == "jax" else keras.callbacks.BackupAndRestore
    callbacks = [backup(output / "backup", save_freq=arguments.backup_steps), OptimizerLogger()]
    if is_first:
        callbacks.append(keras.callbacks.CSVLogger(output / "log.csv", append=True))
    if is_first and importlib.util.find_spec("tensorboard"):  # pip install tensorboard
        callbacks.append(keras.callbacks.TensorBoard(output / "tensorboard", write_graph=False))
    pretrainer.fit(
        shards,
        batch_size=arguments.batch_size,
        epochs=arguments.epochs,
        callbacks=callbacks,
        verbose=1 if is_first and not arguments.smoke else 0,
    )
    if arguments.held_out or arguments.smoke:
        held_out = files if arguments.smoke else files_of(arguments, arguments.held_out, output)
        held_out_shards = in_turn(lambda: write_shards(corpus(held_out), output / "held_out"))
        result = pretrainer.evaluate(held_out_shards, verbose=0, return_dict=True)
        shown = ("masked_lm_perplexity", "masked_lm_accuracy", "next_sentence_accuracy")
        print("held out: " + ", ".join(f"{name} {result[name]:.3f}" for name in shown))
    with files_of_first(output) as folder:
        pretrainer.save(folder / "pretrainer.keras")
        kbl.save_huggingface(pretrainer, folder / "huggingface")
        kbl.save_google(pretrainer, folder / "google")
    fill_mask = kbl.load_task(output / "huggingface", "masked_lm")
    with files_of_first(output) as folder:
        save_kerashub(fill_mask, folder / "kerashub")  # which has no next-sentence task
        if is_first:
            export(fill_mask, folder / "kerashub", folder / "fill_mask")
    print(f"wrote pretrainer.keras, huggingface, google, kerashub and fill_mask to {output}")


if __name__ == "__main__":
    from _main import main

    main(parse_arguments(), train)
