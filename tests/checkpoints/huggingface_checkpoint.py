"""Small random checkpoints in HuggingFace's layout, written by safetensors' own NumPy writer.

The names are those of transformers, models/bert/modeling_bert.py, written out here apart from the package's table.
"""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

VOCABULARY = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *["a", "good", "bad", "film", "night", "É", "é", "##ness", "##s", "中", "un", "##happy", "##ful"],
]

# Every size is its own, so that a swapped axis does not fit.
CONFIG = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "vocab_size": 23,
    "hidden_size": 15,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 22,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.2,
    "max_position_embeddings": 17,
    "type_vocab_size": 4,
    "layer_norm_eps": 1e-7,
    "initializer_range": 0.02,
    "pad_token_id": 0,
}

CLASSIFIER = {
    "architectures": ["BertForSequenceClassification"],
    "id2label": {"0": "bad", "1": "fair", "2": "good"},
    "label2id": {"bad": 0, "fair": 1, "good": 2},
}


def shapes(config, pooler=True):
    """Shape by name of every tensor of a bare encoder."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    result = {
        "embeddings.word_embeddings.weight": (config["vocab_size"], hidden),
        "embeddings.position_embeddings.weight": (config["max_position_embeddings"], hidden),
        "embeddings.token_type_embeddings.weight": (config["type_vocab_size"], hidden),
    }
    norms, denses = ["embeddings.LayerNorm"], {}
    for layer in range(config["num_hidden_layers"]):
        block = f"encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            denses[f"{block}.attention.self.{part}"] = (hidden, hidden)
        denses[f"{block}.attention.output.dense"] = (hidden, hidden)
        denses[f"{block}.intermediate.dense"] = (inner, hidden)
        denses[f"{block}.output.dense"] = (hidden, inner)
        norms += [f"{block}.attention.output.LayerNorm", f"{block}.output.LayerNorm"]
    if pooler:
        denses["pooler.dense"] = (hidden, hidden)
    for name in norms:
        result[f"{name}.weight"] = result[f"{name}.bias"] = (hidden,)
    for name, shape in denses.items():
        result[f"{name}.weight"], result[f"{name}.bias"] = shape, shape[:1]
    return result


def random_tensors(config=CONFIG, *, seed=5, pooler=True, prefix="", head=0, dtype="float32"):
    """Random numbers for every tensor; `head` adds a classification head with that number of classes."""
    rng = np.random.default_rng(seed)
    named = {f"{prefix}{name}": shape for name, shape in shapes(config, pooler).items()}
    if head:
        named |= {"classifier.weight": (head, config["hidden_size"]), "classifier.bias": (head,)}
    return {name: rng.normal(0, 0.3, shape).astype(dtype) for name, shape in named.items()}


def write_json(path, value):
    path.write_text(json.dumps(value), encoding="utf-8")


def write(directory, *, config=CONFIG, tensors=None, vocabulary=VOCABULARY):
    """A complete checkpoint; returns the directory."""
    directory = Path(directory)
    directory.mkdir(exist_ok=True)
    write_json(directory / "config.json", config)
    if vocabulary is not None:
        (directory / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    save_file(random_tensors(config) if tensors is None else tensors, directory / "model.safetensors")
    return directory


def tokenizer_json(vocabulary=VOCABULARY):
    """What transformers writes as tokenizer.json for a BERT."""
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    first = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    first += [{"SpecialToken": {"id": "[SEP]", "type_id": 0}}]
    second = [{"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": index, "content": vocabulary[index], **special} for index in range(5)],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": first,
            "pair": first + second,
            "special_tokens": {
                token: {"id": token, "ids": [vocabulary.index(token)], "tokens": [token]}
                for token in ("[CLS]", "[SEP]")
            },
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {token: index for index, token in enumerate(vocabulary)},
        },
    }


def add_modules(directory, *, kinds=("Transformer", "Pooling", "Normalize"), pooling=None, package="models"):
    """Adds the files of sentence-transformers to a checkpoint."""
    paths = ["", *(f"{index}_{kind}" for index, kind in enumerate(kinds) if index)]
    types = [f"sentence_transformers.{package}.{kind}" for kind in kinds]
    modules = [
        {"idx": index, "name": str(index), "path": path, "type": kind}
        for index, (path, kind) in enumerate(zip(paths, types, strict=True))
    ]
    write_json(directory / "modules.json", modules)
    for path in paths[1:]:
        (directory / path).mkdir(exist_ok=True)
    if "Pooling" in kinds:
        values = {"word_embedding_dimension": 15, "pooling_mode_cls_token": True} if pooling is None else pooling
        write_json(directory / "1_Pooling" / "config.json", values)
    return directory
