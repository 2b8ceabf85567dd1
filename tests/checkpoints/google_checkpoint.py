"""Small random checkpoints in the layout of google-research/bert, written by TensorFlow's own saver.

The names are those of google-research/bert, modeling.py, run_pretraining.py, run_classifier.py, run_squad.py and
optimization.py, written out here apart from the package's table.
"""

import json
from pathlib import Path

import numpy as np
import tensorflow as tf

VOCABULARY = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *["a", "good", "bad", "film", "night", "é", "e", "##ness", "##s", "中", "un", "##happy", "##ful"],
]

# Every size is its own, so that a swapped axis does not fit.
CONFIG = {
    "attention_probs_dropout_prob": 0.2,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 15,
    "initializer_range": 0.03,
    "intermediate_size": 22,
    "max_position_embeddings": 17,
    "num_attention_heads": 3,
    "num_hidden_layers": 2,
    "type_vocab_size": 4,
    "vocab_size": 23,
}


def encoder(config=CONFIG):
    """Shape by name of every variable of `modeling.BertModel`."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    shapes = {
        "bert/embeddings/word_embeddings": (config["vocab_size"], hidden),
        "bert/embeddings/token_type_embeddings": (config["type_vocab_size"], hidden),
        "bert/embeddings/position_embeddings": (config["max_position_embeddings"], hidden),
        "bert/embeddings/LayerNorm/gamma": (hidden,),
        "bert/embeddings/LayerNorm/beta": (hidden,),
        "bert/pooler/dense/kernel": (hidden, hidden),
        "bert/pooler/dense/bias": (hidden,),
    }
    for layer in range(config["num_hidden_layers"]):
        block = f"bert/encoder/layer_{layer}"
        shapes |= {
            f"{block}/attention/self/query/kernel": (hidden, hidden),
            f"{block}/attention/self/query/bias": (hidden,),
            f"{block}/attention/self/key/kernel": (hidden, hidden),
            f"{block}/attention/self/key/bias": (hidden,),
            f"{block}/attention/self/value/kernel": (hidden, hidden),
            f"{block}/attention/self/value/bias": (hidden,),
            f"{block}/attention/output/dense/kernel": (hidden, hidden),
            f"{block}/attention/output/dense/bias": (hidden,),
            f"{block}/attention/output/LayerNorm/gamma": (hidden,),
            f"{block}/attention/output/LayerNorm/beta": (hidden,),
            f"{block}/intermediate/dense/kernel": (hidden, inner),
            f"{block}/intermediate/dense/bias": (inner,),
            f"{block}/output/dense/kernel": (inner, hidden),
            f"{block}/output/dense/bias": (hidden,),
            f"{block}/output/LayerNorm/gamma": (hidden,),
            f"{block}/output/LayerNorm/beta": (hidden,),
        }
    return shapes


def masked_lm(config=CONFIG):
    hidden = config["hidden_size"]
    return {
        "cls/predictions/transform/dense/kernel": (hidden, hidden),
        "cls/predictions/transform/dense/bias": (hidden,),
        "cls/predictions/transform/LayerNorm/gamma": (hidden,),
        "cls/predictions/transform/LayerNorm/beta": (hidden,),
        "cls/predictions/output_bias": (config["vocab_size"],),
    }


def next_sentence(config=CONFIG):
    hidden = config["hidden_size"]
    return {"cls/seq_relationship/output_weights": (2, hidden), "cls/seq_relationship/output_bias": (2,)}


def classifier(num_labels, config=CONFIG):
    return {"output_weights": (num_labels, config["hidden_size"]), "output_bias": (num_labels,)}


def question_answerer(config=CONFIG):
    return {"cls/squad/output_weights": (2, config["hidden_size"]), "cls/squad/output_bias": (2,)}


def slots(shapes):
    """What `AdamWeightDecayOptimizer` keeps, and the step."""
    moments = {f"{name}/{slot}": shape for name, shape in shapes.items() for slot in ("adam_m", "adam_v")}
    return {**moments, "global_step": ()}


def random_arrays(shapes, seed=5):
    rng = np.random.default_rng(seed)
    arrays = {name: np.asarray(rng.normal(0, 0.3, shape), "float32") for name, shape in shapes.items()}
    return {**arrays, **({"global_step": np.int64(1000)} if "global_step" in shapes else {})}


def save(prefix, arrays):
    """What `tf.train.Saver.save` writes beside the graph."""
    names = sorted(arrays)
    tensors = [tf.constant(arrays[name]) for name in names]
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors)


def write(directory, shapes=None, *, arrays=None, config=CONFIG, vocabulary=VOCABULARY, prefix="bert_model.ckpt"):
    """A complete checkpoint; returns the directory and the arrays."""
    directory = Path(directory)
    directory.mkdir(exist_ok=True)
    (directory / "bert_config.json").write_text(json.dumps(config), encoding="utf-8")
    if vocabulary is not None:
        (directory / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    arrays = random_arrays(encoder(config) if shapes is None else shapes) if arrays is None else arrays
    save(directory / prefix, arrays)
    return directory, arrays


def expected_weights(arrays, num_layers=2):
    """The weights of our backbone by path, put together by hand."""
    weights = {
        "embedding/token_embedding": arrays["bert/embeddings/word_embeddings"],
        "embedding/segment_embedding": arrays["bert/embeddings/token_type_embeddings"],
        "embedding/position_embedding": arrays["bert/embeddings/position_embeddings"],
    }
    same = {"embedding/layer_norm": "bert/embeddings/LayerNorm", "pooler/dense": "bert/pooler/dense"}
    if "bert/encoder/embedding_hidden_mapping_in/kernel" in arrays:
        same["embedding/projection"] = "bert/encoder/embedding_hidden_mapping_in"
    for layer in range(num_layers):
        ours, theirs = f"encoder_block_{layer}", f"bert/encoder/layer_{layer}"
        for part in ("kernel", "bias"):
            thirds = [arrays[f"{theirs}/attention/self/{name}/{part}"] for name in ("query", "key", "value")]
            weights[f"{ours}/attention/query_key_value/{part}"] = np.concatenate(thirds, axis=-1)
        same |= {
            f"{ours}/attention/output": f"{theirs}/attention/output/dense",
            f"{ours}/attention_layer_norm": f"{theirs}/attention/output/LayerNorm",
            f"{ours}/feed_forward/intermediate": f"{theirs}/intermediate/dense",
            f"{ours}/feed_forward/output": f"{theirs}/output/dense",
            f"{ours}/feed_forward_layer_norm": f"{theirs}/output/LayerNorm",
        }
    for ours, theirs in same.items():
        for part in ("kernel", "bias", "gamma", "beta"):
            if f"{theirs}/{part}" in arrays:
                weights[f"{ours}/{part}"] = arrays[f"{theirs}/{part}"]
    return {path: np.asarray(array, "float32") for path, array in weights.items()}
