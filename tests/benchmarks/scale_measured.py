"""What training in several JAX processes does on this machine: the measurements behind docs/explanation/scale.md.

    KERAS_BACKEND=jax python tests/benchmarks/scale_measured.py steps        1, 2 and 4 processes: bytes, time of a step
    KERAS_BACKEND=jax python tests/benchmarks/scale_measured.py base         BERT-base on 2 virtual devices: bytes
    KERAS_BACKEND=jax python tests/benchmarks/scale_measured.py memory       a step with rematerialization and without
    python tests/benchmarks/scale_measured.py read                           rows that a process reads from shards

The bytes of all-reduces and the memory of a step are those of the program that XLA has compiled, which it writes to a
folder. The processes of one machine share its processors, so steps of several take longer than those of one.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BYTES = {"f32": 4, "bf16": 2, "s32": 4, "u32": 4, "pred": 1, "s64": 8}
NUM_STEPS = 12
ALL_REDUCE = re.compile(r"= (?P<shapes>.*?) all-reduce(-start)?\(")
SHAPE = re.compile(r"(f32|bf16|s32|u32|s64|pred)\[([\d,]*)\]")


def all_reduced(program: str) -> list[tuple[str, int]]:
    """Shape and bytes of each array that the all-reduces of a compiled program sum."""
    found = []
    for match in ALL_REDUCE.finditer(program):
        for dtype, dims in SHAPE.findall(match["shapes"]):
            sizes = [int(size) for size in dims.split(",") if size]
            found.append((f"{dtype}[{dims}]", BYTES[dtype] * math.prod(sizes)))
    return found


def train(preset: str, num_rows: int, length: int, rematerialize: str) -> None:
    """Trains a few steps in this process, and prints the seconds of each after the first two."""
    import keras
    import numpy as np

    import keras_bert_layers as kbl

    kbl.distribution.initialize()
    keras.utils.set_random_seed(1)
    words = [f"word{number}" for number in range(30517)]
    tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])
    backbone = kbl.BertBackbone(kbl.presets.preset_config(preset))
    backbone.rematerialize = rematerialize == "True"
    task = kbl.BertPretrainer(backbone, kbl.BertPreprocessor(tokenizer, max_length=length, padding="max_length"))
    draw = np.random.default_rng(1)
    count = num_rows * NUM_STEPS
    texts = [" ".join(draw.choice(words, length // 2)) for _ in range(2 * count)]
    ends = []
    task.fit(
        (texts[:count], texts[count:]),
        draw.integers(0, 2, count),
        batch_size=num_rows,
        verbose=0,
        callbacks=[
            keras.callbacks.LambdaCallback(on_train_batch_end=lambda *_, **__: ends.append(time.perf_counter()))
        ],
    )
    seconds = [end - start for start, end in itertools.pairwise(ends[2:])]
    print(json.dumps({"seconds": statistics.median(seconds), "parameters": task.count_params()}))


def run(preset: str, num_rows: int, length: int, *, processes: int = 1, devices: int = 1, remat: bool = False) -> None:
    """Runs `train` in processes, and prints the bytes of all-reduces, the memory and the time of a step."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp())
    running = []
    for index in range(processes):
        own = folder / str(index)
        flags = f"--xla_force_host_platform_device_count={devices} --xla_dump_to={own} --xla_dump_hlo_as_text"
        variables = {"KERAS_BACKEND": "jax", "XLA_FLAGS": flags}
        if processes > 1:
            job = {"JOB_ADDRESSES": f"127.0.0.1:{port}", "NUM_PROCESSES": processes, "PROCESS_ID": index}
            variables |= {f"KERAS_DISTRIBUTION_{name}": str(value) for name, value in job.items()}
        command = [sys.executable, __file__, "train", preset, str(num_rows), str(length), str(remat)]
        running.append(subprocess.Popen(command, env=os.environ | variables, stdout=subprocess.PIPE, text=True))
    outputs = [process.communicate()[0] for process in running]
    told = json.loads(outputs[0].splitlines()[-1])
    path = max((folder / "0").glob("*train_step*after_optimizations.txt"), key=lambda path: path.stat().st_size)
    arrays = all_reduced(path.read_text())
    report = path.with_name(path.name.replace(".txt", "-memory-usage-report.txt"))
    total = re.search(r"Total bytes: .*", report.read_text())[0] if report.exists() else "no report of memory"
    print(f"{preset}, {num_rows} rows of {length}, {processes} processes of {devices} devices, remat={remat}")
    print(f"  parameters {told['parameters']:,}, {4 * told['parameters'] / 1e6:.1f} MB in float32")
    print(f"  all-reduced {sum(size for _, size in arrays) / 1e6:.1f} MB in {len(arrays)} arrays; {total}")
    for name, size in sorted(arrays, key=lambda pair: -pair[1])[:3]:
        print(f"    {name}: {size / 1e6:.1f} MB")
    print(f"  {1000 * told['seconds']:.0f} ms per step", flush=True)


def read() -> None:
    """Rows per second of processor time: reading records of shards, and all that one process of many does."""
    import numpy as np

    import keras_bert_layers as kbl
    from keras_bert_layers.preprocessing import FullSentences

    draw = np.random.default_rng(1)
    words = np.array([f"word{number}" for number in range(30517)])
    tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words.tolist()])
    folder = Path(tempfile.mkdtemp())
    lines = ("\n".join(" ".join(draw.choice(words, 25)) for _ in range(20)) for _ in range(10_000))
    (folder / "corpus.txt").write_text("\n\n".join(lines))
    files = kbl.data.DocumentFiles(folder / "corpus.txt", separated_by="blank_lines")
    for length in (128, 512):
        corpus = kbl.data.TextCorpus(files, tokenizer, rule=FullSentences(), max_length=length)
        start = time.process_time()
        shards = kbl.data.write_shards(corpus, folder / f"shards{length}")
        rows = shards.num_rows[0]
        tokens, size = rows * length, sum(shard["bytes"] for shard in shards.manifest["shards"])
        seconds = time.process_time() - start
        print(
            f"{length} tokens: {rows:,} rows, {size / rows:.0f} bytes each; written at {tokens / seconds:,.0f} tokens/s"
        )
        rates = []
        for _ in range(3):
            start = time.process_time()
            count = sum(1 for _ in shards.records(0).batch(4096))
            rates.append(rows / (time.process_time() - start))
        print(f"  records read: {statistics.median(rates):,.0f} rows/s of processor time ({count} batches)", flush=True)


def main() -> None:
    """The measurement that is named."""
    kind, *rest = sys.argv[1:]
    if kind == "train":
        train(rest[0], int(rest[1]), int(rest[2]), rest[3])
    elif kind == "steps":
        for processes in (1, 2, 4):
            run("bert_uncased_L-2_H-128_A-2", 32, 128, processes=processes)
    elif kind == "base":
        run("bert_base_uncased", 2, 32, devices=2)
    elif kind == "memory":
        for remat in (False, True):
            run("bert_uncased_L-8_H-256_A-4", 32, 128, remat=remat)
    else:
        read()


if __name__ == "__main__":
    main()
