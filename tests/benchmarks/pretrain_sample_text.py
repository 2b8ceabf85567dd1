"""google-research/bert's recipe on its own sample text, from scratch at tiny size: does it memorize the text?

    python tests/benchmarks/pretrain_sample_text.py --text ../shared/data/corpus/sample_text.txt \\
        --vocabulary ../shared/data/vocab/bert-base-uncased.txt

The data are those of its README: rows of 128 tokens, 15 % masked and at most 20, five duplicates with masks that stay,
full batches of 32, its AdamW with its schedule. Its model starts from pretrained weights and trains 20 steps at 2e-5;
this one has two blocks of width 128 and random weights, and gets more steps at a higher rate. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import _recipe as recipe


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--vocabulary", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=12345)
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    recipe.limit_threads()
    import keras

    import keras_bert_layers as kbl
    from keras_bert_layers.data import DocumentFiles, TextCorpus, TokenShards, write_shards
    from keras_bert_layers.optimizers import GoogleWarmupLinearDecay, google_adamw
    from keras_bert_layers.preprocessing import NextSentence

    keras.utils.set_random_seed(options.seed)
    tokenizer = kbl.BertTokenizer(options.vocabulary)
    preprocessor = kbl.BertPreprocessor(tokenizer, max_length=128)
    config = kbl.BertConfig(
        vocabulary_size=tokenizer.vocabulary_size(), hidden_dim=128, num_layers=2, num_heads=2, intermediate_dim=512
    )
    pretrainer = kbl.BertPretrainer(kbl.BertBackbone(config), preprocessor, mask_selection_length=20, seed=options.seed)
    with tempfile.TemporaryDirectory() as directory:
        files = DocumentFiles(options.text, separated_by="blank_lines")
        corpus = TextCorpus(files, tokenizer, rule=NextSentence(), max_length=128, seed=options.seed)
        write_shards(corpus, directory, num_duplicates=5)
        shards = TokenShards(directory, tokenizer, static_masks=True)
        num_steps = -(-min(shards.num_rows) // 32) * options.epochs
        rate = GoogleWarmupLinearDecay(options.rate, num_steps, num_warmup_steps=num_steps // 10)
        pretrainer.compile(google_adamw(rate))
        start = time.perf_counter()
        pretrainer.fit(shards, batch_size=32, epochs=options.epochs, verbose=0)
        seconds = time.perf_counter() - start
        result = pretrainer.evaluate(shards, verbose=0, return_dict=True)
    recipe.tell(
        options,
        {
            "rows": shards.num_rows,
            "steps": num_steps,
            "train_seconds": round(seconds, 1),
            **{name: round(float(value), 4) for name, value in result.items()},
        },
    )


if __name__ == "__main__":
    main()
