"""Small random checkpoints of Jina embeddings v3 with adapters: stacked in the weights, and in folders of PEFT.

The names of tensors are those of jinaai/xlm-roberta-flash-implementation, and of transformers, modeling_bert.py and
conversion_mapping.py, written out here apart from the package's table.
"""

import json

import numpy as np
from safetensors.numpy import save_file

VOCABULARY = ["<s>", "[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]", *["query", ":", "a", "good", "bad", "film", "night"]]
# Every size is its own, so that a swapped axis does not fit.
CONFIG = {
    "architectures": ["JinaEmbeddingsV3Model"],
    "model_type": "jina_embeddings_v3",
    "vocab_size": len(VOCABULARY),
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 26,
    "type_vocab_size": 1,
    "layer_norm_eps": 1e-5,
    "hidden_act": "gelu",
    "rope_parameters": {"rope_type": "default", "rope_theta": 50.0},
    "pad_token_id": 1,
}
ADAPTERS = ("retrieval.query", "retrieval.passage", "separation", "classification", "text-matching")
RANK, ALPHA = 2, 3
PROMPTS = {"retrieval.query": "query: a ", "retrieval.passage": "night: ", **dict.fromkeys(ADAPTERS[2:], "")}
FORMER = {
    **{key: value for key, value in CONFIG.items() if key != "rope_parameters"},
    **{"model_type": "xlm-roberta", "architectures": ["XLMRobertaModel"], "position_embedding_type": "rotary"},
    **{"rotary_emb_base": 50.0, "lora_adaptations": list(ADAPTERS), "lora_rank": RANK, "lora_alpha": ALPHA},
    **{"lora_dropout_p": 0.0, "load_trained_adapters": True, "matryoshka_dimensions": [4, 12], "emb_pooler": None},
    **{"truncate_dim": None, "task_instructions": PROMPTS, "use_reentrant": False, "use_flash_attn": True},
}
WORDS, SEGMENTS = "embeddings.word_embeddings", "embeddings.token_type_embeddings"


def modules():
    """The layers with a matrix: name in files -> shape."""
    hidden, inner = CONFIG["hidden_size"], CONFIG["intermediate_size"]
    found = {WORDS: (CONFIG["vocab_size"], hidden), SEGMENTS: (1, hidden)}
    for layer in range(CONFIG["num_hidden_layers"]):
        block = f"encoder.layers.{layer}"
        found |= {f"{block}.mixer.Wqkv": (3 * hidden, hidden), f"{block}.mixer.out_proj": (hidden, hidden)}
        found |= {f"{block}.mlp.fc1": (inner, hidden), f"{block}.mlp.fc2": (hidden, inner)}
    return {**found, "pooler.dense": (hidden, hidden)}


def base_tensors(rng):
    """Random numbers for the base."""
    shapes = {f"{name}.weight": shape for name, shape in modules().items()}
    shapes |= {f"{name}.bias": shape[:1] for name, shape in modules().items() if "embeddings" not in name}
    norms = ["emb_ln", *(f"encoder.layers.{layer}.norm{number}" for layer in range(2) for number in (1, 2))]
    shapes |= {f"{name}.{last}": (CONFIG["hidden_size"],) for name in norms for last in ("weight", "bias")}
    return {name: rng.normal(0, 0.3, shape).astype("float32") for name, shape in shapes.items()}


def stacks(rng):
    """Random matrices of all adapters: module -> A and B, as the former code stacks them."""
    found = {}
    for name, (rows, columns) in modules().items():
        first, second = (rows, columns) if "embeddings" in name else (columns, rows)
        shapes = [(len(ADAPTERS), first, RANK), (len(ADAPTERS), RANK, second)]
        if "embeddings" not in name:
            shapes = [(count, end, start) for count, start, end in shapes]
        found[name] = tuple(rng.normal(0, 0.4, shape).astype("float32") for shape in shapes)
    return found


def merged(base, stacked, adapter):
    """The base's tensors with one adapter, by the formulas of the former code."""
    index, result = ADAPTERS.index(adapter), dict(base)
    for name, (first, second) in stacked.items():
        a, b = first[index], second[index]
        product = a @ b if "embeddings" in name else b @ a
        result[f"{name}.weight"] = (base[f"{name}.weight"] + ALPHA / RANK * product).astype("float32")
    return result


def write(directory, config, tensors, *, prompts=False):
    """Writes the files of a directory; with `prompts`, those of sentence-transformers too."""
    directory.mkdir(parents=True)
    save_file({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, directory / "model.safetensors")
    own = "custom_st" if config["model_type"] == "xlm-roberta" else "sentence_transformers.models"
    kinds = {"": f"{own}.Transformer", "1_Pooling": "sentence_transformers.models.Pooling"}
    kinds["2_Normalize"] = "sentence_transformers.models.Normalize"
    files = {
        "config": config,
        "modules": [{"idx": 0, "name": path, "path": path, "type": kind} for path, kind in kinds.items()],
        "1_Pooling/config": {"word_embedding_dimension": 12, "pooling_mode_mean_tokens": True},
        "tokenizer_config": {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 20},
    }
    if prompts:
        files["config_sentence_transformers"] = {"prompts": PROMPTS, "default_prompt_name": None}
    for name, values in files.items():
        (directory / f"{name}.json").parent.mkdir(exist_ok=True)
        (directory / f"{name}.json").write_text(json.dumps(values))
    (directory / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    return directory


def write_former(directory, base, stacked, *, config=FORMER, **options):
    """Writes the adapters as the former code does, beside the base's weights."""
    tensors = {f"roberta.{name}": tensor for name, tensor in base.items()}
    for name, pair in stacked.items():
        stem = f"roberta.{name}.parametrizations.weight"
        tensors[f"{stem}.original"] = tensors.pop(f"roberta.{name}.weight")
        tensors |= {f"{stem}.0.lora_{letter}": stack for letter, stack in zip("AB", pair, strict=True)}
    return write(directory, config, tensors, **options)


def write_folders(directory, base, stacked, **options):
    """Writes each adapter as PEFT does, in a folder of its own; its query, key and value are separate layers."""
    write(directory, CONFIG, base, **options)
    for index, adapter in enumerate(ADAPTERS):
        tensors = {}
        for name, (first, second) in stacked.items():
            a, b = first[index], second[index]
            stem = "base_model.model." + name.replace("encoder.", "").replace("mixer.out_proj", "self_attn.o_proj")
            if "embeddings" in name:
                tensors |= {f"{stem}.lora_embedding_A": a.T, f"{stem}.lora_embedding_B": b.T}
            for letter, part in zip("qkv", np.split(b, 3), strict=True) if "Wqkv" in name else ():
                own = stem.replace("mixer.Wqkv", f"self_attn.{letter}_proj")
                tensors |= {f"{own}.lora_A.weight": a, f"{own}.lora_B.weight": part}
            if "embeddings" not in name and "Wqkv" not in name:
                tensors |= {f"{stem}.lora_A.weight": a, f"{stem}.lora_B.weight": b}
        folder = directory / adapter.replace(".", "_").replace("-", "_")
        folder.mkdir()
        own = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
        save_file(own, folder / "adapter_model.safetensors")
        values = {"peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA, "base_model_name_or_path": "jinaai/x"}
        values |= {"task_type": "FEATURE_EXTRACTION", "target_modules": r".*(_proj|fc1|fc2|dense|_embeddings)"}
        (folder / "adapter_config.json").write_text(json.dumps(values))
    return directory
