"""Every answer of the exported question answerer beside that of Keras, on the SQuAD test questions.

    python tests/benchmarks/finetune_squad.py --contender keras_bert_layers --data ../shared/data/squad --save v1.keras
    python tests/benchmarks/squad_saved_model.py --start v1.keras --data ../shared/data/squad

Exports the model that `finetune_squad.py` has saved, asks the SavedModel in a fresh process, which has TensorFlow and
its text operations and nothing of Keras or of this package, the 2,339 questions of the last 8 articles, and compares
the texts with the answers that were written beside the model. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import _recipe as recipe
from finetune_squad import NUM_TEST_ARTICLES, read_articles, texts_of

ASK = """
import json, sys
import tensorflow as tf
import tensorflow_text
loaded = tf.saved_model.load(sys.argv[1])
questions, contexts = json.load(open(sys.argv[2], encoding="utf-8"))
answers = []
for begin in range(0, len(questions), 64):
    part = slice(begin, begin + 64)
    asked = {"question": tf.constant(questions[part]), "context": tf.constant(contexts[part])}
    answers += [answer.decode() for answer in loaded.signatures["serving_default"](**asked)["answer"].numpy()]
imported = {name.partition(".")[0] for name in sys.modules}
result = {"answers": answers, "has_package": "keras_bert_layers" in imported}
json.dump(result, open(sys.argv[3], "w", encoding="utf-8"))
"""


def main() -> None:
    """Reads the arguments, exports, asks, prints one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", type=Path, required=True, help="the .keras file of finetune_squad.py")
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds v1.1-dev.json.gz")
    parser.add_argument("--rows", type=int, help="the first questions only, for a quick try")
    options = parser.parse_args()
    recipe.limit_threads()
    import keras

    import keras_bert_layers  # noqa: F401 - Keras finds the task's class by it

    articles = read_articles(options.data / "v1.1-dev.json.gz")
    test = [question for article in articles[-NUM_TEST_ARTICLES:] for question in article][: options.rows]
    expected = json.loads(options.start.with_suffix(".answers.json").read_text(encoding="utf-8"))[: options.rows]
    with tempfile.TemporaryDirectory() as folder:
        exported, asked, told = (str(Path(folder) / name) for name in ("model", "asked.json", "told.json"))
        keras.models.load_model(options.start).export(exported)
        Path(asked).write_text(json.dumps(texts_of(test)), encoding="utf-8")
        subprocess.run([sys.executable, "-c", ASK, exported, asked, told], check=True)
        result = json.loads(Path(told).read_text(encoding="utf-8"))
    equal = sum(first == second for first, second in zip(result["answers"], expected, strict=True))
    found = {"questions": len(expected), "equal": equal, "package_imported": result["has_package"]}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
