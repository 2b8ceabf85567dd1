"""Small directories with one thing that some program reads differently, and directories that all read the same.

Each was written from what other programs do, apart from the rules of `read_differently`. "Ran" names a release that was
run on the directory; "source" names a file of text-embeddings-inference at commit 0d124dc.

A directory on which nothing differs has `gelu_new`, which is what KerasHub and text-embeddings-inference compute for
every "gelu", and keeps the case, as KerasHub leaves accents where it lowers letters.
"""

import copy
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import huggingface_checkpoint
import numpy as np
from huggingface_checkpoint import VOCABULARY, random_tensors, write_json
from safetensors.numpy import save_file

TRANSFORMERS, SENTENCES, TOKENIZERS = "transformers 5.24", "sentence-transformers 6.2", "tokenizers 0.23"
SERVER, KERASHUB = "text-embeddings-inference", "KerasHub 0.32"
ABSENT = ...


@dataclasses.dataclass(frozen=True)
class Crafted:
    """A directory: who reads it differently, how that is known, and a pattern that an honest sentence has.

    Where `read_differently` has no entry, `silent` says why: the loader named here refuses the directory, with the
    pattern in its error, or the difference is there in every directory of the kind, which is for the guide.
    """

    name: str
    write: Callable[..., Any]
    programs: tuple[str, ...] = ()
    known: str = ""
    word: str = ""
    silent: str = ""


CONFIG = {**huggingface_checkpoint.CONFIG, "hidden_act": "gelu_new", "layer_norm_eps": 1e-12, "type_vocab_size": 2}
SPECIAL = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), VOCABULARY[:5], strict=True))
TOKENIZER = {
    **SPECIAL,
    **{"tokenizer_class": "BertTokenizer", "do_lower_case": False, "strip_accents": None},
    **{"tokenize_chinese_chars": True, "model_max_length": 17},
}
CASED_JSON = huggingface_checkpoint.tokenizer_json()
CASED_JSON["normalizer"]["lowercase"] = False
MODES = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
POOLING = {f"pooling_mode_{mode}": mode == "mean_tokens" for mode in MODES}
LABELS = {"id2label": {"2": "good", "0": "bad", "1": "fair"}, "label2id": {"bad": 0, "fair": 1, "good": 2}}
CLASSIFIER = {"architectures": ["BertForSequenceClassification"], **LABELS}
RERANKER = {**CLASSIFIER, "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
PROMPTS = {"prompts": {"query": "night ", "document": "bad "}}


def merged(values, changes):
    """The values with those of `changes`, dictionary by dictionary; `ABSENT` takes a key out."""
    result = copy.deepcopy(values)
    for key, change in changes.items():
        if change is ABSENT:
            result.pop(key, None)
        else:
            both = isinstance(result.get(key), dict) and isinstance(change, dict)
            result[key] = merged(result[key], change) if both else change
    return result


def chain(*kinds, old=True):
    """The content of `modules.json`: a transformer, then these."""
    places = {kind: f"base.modules.{kind.lower()}" for kind in ("Transformer", "Dense", "Normalize")}
    places["Pooling"] = "sentence_transformer.modules.pooling"
    return [
        {
            "idx": index,
            "name": str(index),
            "path": f"{index}_{kind}" if index else "",
            "type": f"sentence_transformers.{'models' if old else places[kind]}.{kind}",
        }
        for index, kind in enumerate(("Transformer", *kinds))
    ]


FILES = {
    "config.json": CONFIG,
    "tokenizer_config.json": TOKENIZER,
    "tokenizer.json": CASED_JSON,
    "modules.json": chain("Pooling", "Normalize"),
    "1_Pooling/config.json": {"word_embedding_dimension": 15, **POOLING},
    "sentence_bert_config.json": {"max_seq_length": 17, "do_lower_case": False},
}
SENTENCE_FILES = ("modules.json", "1_Pooling/config.json", "sentence_bert_config.json")
HEADLESS = dict.fromkeys(SENTENCE_FILES, ABSENT)


def write(directory, tensors, changes=(), vocabulary=VOCABULARY):
    """Writes a cased BERT with mean pooling, with these changes of files: path -> what `merged` takes."""
    directory.mkdir()
    save_file({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, directory / "model.safetensors")
    for path, values in merged(FILES, dict(changes)).items():
        (directory / path).parent.mkdir(exist_ok=True)
        write_json(directory / path, values)
    if vocabulary:
        (directory / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    return directory


def bert(changes, **options):
    """A writer of a BERT whose `config.json` has these changes too."""
    return lambda directory: write(directory, random_tensors(CONFIG), changes, **options)


def headed(config, count, pooler=True, **files):
    """A writer of a classifier without sentence-transformers' files."""
    tensors = random_tensors(CONFIG, prefix="bert.", head=count, pooler=pooler)
    return lambda directory: write(directory, tensors, {**HEADLESS, "config.json": config, **files})


def with_dense(directory):
    """Class names as sentence-transformers 5.4 and later write them."""
    dense = {"in_features": 15, "out_features": 7, "bias": True}
    dense["activation_function"] = "torch.nn.modules.activation.Tanh"
    modules = chain("Pooling", "Dense", "Normalize", old=False)
    write(directory, random_tensors(CONFIG), {"modules.json": modules, "2_Dense/config.json": dense})
    rng = np.random.default_rng(1)
    tensors = {"linear.weight": rng.normal(0, 0.3, (7, 15)), "linear.bias": rng.normal(0, 0.3, 7)}
    save_file(
        {name: value.astype("float32") for name, value in tensors.items()}, directory / "2_Dense/model.safetensors"
    )


def with_adapter(directory):
    """Full weights, and PEFT's adapter of the queries beside them."""
    write(directory, random_tensors(CONFIG))
    values = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["query"]}
    values |= {"base_model_name_or_path": str(directory), "task_type": "FEATURE_EXTRACTION"}
    write_json(directory / "adapter_config.json", values)
    names = [f"base_model.model.encoder.layer.{index}.attention.self.query.lora" for index in range(2)]
    tensors = {f"{name}_{part}.weight": np.full(shape, 0.2, "f4") for name in names for part, shape in LORA.items()}
    save_file(tensors, directory / "adapter_model.safetensors")


LORA = {"A": (2, 15), "B": (15, 2)}


def relative_keys(directory):
    """The distances that transformers 4 adds to attention, with their weights."""
    rng = np.random.default_rng(1)
    names = [f"encoder.layer.{index}.attention.self.distance_embedding.weight" for index in range(2)]
    distances = {name: rng.normal(0, 0.3, (33, 5)).astype("float32") for name in names}
    changes = {"config.json": {"position_embedding_type": "relative_key"}}
    write(directory, random_tensors(CONFIG) | distances, changes)


# The relatives: names of matrices -> sizes, by v: vocabulary, p: positions, s: segments, e: embedding, h: hidden,
# i: inner, and multiples of these. "n" is a norm; "-" stands after what has no bias.
SIZES = {"v": 23, "p": 19, "s": 2, "e": 8, "h": 16, "i": 22, "2i": 44, "3h": 48, "heads": 2, "32": 32}
BLOCK = "encoder.layer.{}."
NAMES = {
    "mpnet": "embeddings.word_embeddings=v,h- embeddings.position_embeddings=p,h- embeddings.LayerNorm=n "
    "{B}attention.attn.q=h,h {B}attention.attn.k=h,h {B}attention.attn.v=h,h {B}attention.attn.o=h,h "
    "{B}attention.LayerNorm=n {B}intermediate.dense=i,h {B}output.dense=h,i {B}output.LayerNorm=n "
    "encoder.relative_attention_bias=32,heads- pooler.dense=h,h",
    "albert": "embeddings.word_embeddings=v,e- embeddings.position_embeddings=p,e- embeddings.LayerNorm=n:e "
    "embeddings.token_type_embeddings=s,e- encoder.embedding_hidden_mapping_in=h,e {A}full_layer_layer_norm=n "
    "{A}attention.query=h,h {A}attention.key=h,h {A}attention.value=h,h {A}attention.dense=h,h "
    "{A}attention.LayerNorm=n {A}ffn=i,h {A}ffn_output=h,i pooler=h,h",
    "deberta-v2": "embeddings.word_embeddings=v,h- embeddings.LayerNorm=n {B}attention.self.query_proj=h,h "
    "{B}attention.self.key_proj=h,h {B}attention.self.value_proj=h,h {B}attention.output.dense=h,h "
    "{B}attention.output.LayerNorm=n {B}intermediate.dense=i,h {B}output.dense=h,i {B}output.LayerNorm=n "
    "encoder.rel_embeddings=h,h- encoder.LayerNorm=n",
    "nomic_bert": "emb_ln=n embeddings.token_type_embeddings=s,h- embeddings.word_embeddings=v,h- "
    "{C}attn.Wqkv=3h,h- {C}attn.out_proj=h,h- {C}mlp.fc11=i,h- {C}mlp.fc12=i,h- {C}mlp.fc2=h,i- {C}norm1=n {C}norm2=n",
    "gte": "embeddings.LayerNorm=n embeddings.word_embeddings=v,h- {B}mlp.down_proj=h,i {B}mlp.up_gate_proj=2i,h- "
    "{B}attn_ln=n {B}mlp_ln=n {B}attention.qkv_proj=3h,h {B}attention.o_proj=h,h",
    "modernbert": "embeddings.tok_embeddings=v,h- embeddings.norm=n- layers.1.attn_norm=n- layers.{}.attn.Wqkv=3h,h- "
    "layers.{}.attn.Wo=h,h- layers.{}.mlp_norm=n- layers.{}.mlp.Wi=2i,h- layers.{}.mlp.Wo=h,i- final_norm=n-",
    "electra": "embeddings.word_embeddings=v,e- embeddings.position_embeddings=p,e- embeddings.LayerNorm=n:e "
    "embeddings.token_type_embeddings=s,e- embeddings_project=h,e {B}attention.self.query=h,h "
    "{B}attention.self.key=h,h {B}attention.self.value=h,h {B}attention.output.dense=h,h "
    "{B}attention.output.LayerNorm=n {B}intermediate.dense=i,h {B}output.dense=h,i {B}output.LayerNorm=n",
    "distilbert": "embeddings.word_embeddings=v,h- embeddings.position_embeddings=p,h- embeddings.LayerNorm=n "
    "{D}attention.q_lin=h,h {D}attention.k_lin=h,h {D}attention.v_lin=h,h {D}attention.out_lin=h,h "
    "{D}sa_layer_norm=n {D}ffn.lin1=i,h {D}ffn.lin2=h,i {D}output_layer_norm=n",
}
PREFIXES = {
    **{"{A}": "encoder.albert_layer_groups.0.albert_layers.0.", "{B}": BLOCK, "{C}": "encoder.layers.{}."},
    "{D}": "transformer.layer.{}.",
}


def relative_tensors(family):
    """Random numbers for every tensor of a relative; norms are about 1."""
    rng, result = np.random.default_rng(3), {}
    text = functools.reduce(lambda text, item: text.replace(*item), PREFIXES.items(), NAMES[family])
    for name, _, sizes in (item.partition("=") for item in text.split()):
        kind, _, width = sizes.rstrip("-").partition(":")
        shape = (SIZES[width or "h"],) if kind == "n" else tuple(SIZES[size] for size in kind.split(","))
        prefix = f"{family}." if family in ("albert", "distilbert") else ""  # KerasHub finds no others
        for module in dict.fromkeys((prefix + name.format(0), prefix + name.format(1))):
            result[f"{module}.weight"] = rng.normal(kind == "n", 0.3, shape).astype("float32")
            if not sizes.endswith("-"):
                result[f"{module}.bias"] = rng.normal(0, 0.3, shape[:1]).astype("float32")
    return result


USUAL = {
    **{"vocab_size": 23, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 22},
    **{"max_position_embeddings": 19, "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu_new"},
    **{"pad_token_id": 0, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "initializer_range": 0.02},
}
RELATIVES = {
    "mpnet": {**USUAL, "architectures": ["MPNetModel"], "pad_token_id": 1, "relative_attention_num_buckets": 32},
    "electra": {**USUAL, "architectures": ["ElectraModel"], "embedding_size": 8},
    "albert": {
        **{**USUAL, "architectures": ["AlbertModel"], "embedding_size": 8, "num_hidden_groups": 1},
        **{"inner_group_num": 1, "classifier_dropout_prob": 0.1},
    },
    "deberta-v2": {
        **{**USUAL, "architectures": ["DebertaV2Model"], "type_vocab_size": 0, "layer_norm_eps": 1e-7},
        **{
            "relative_attention": True,
            "position_buckets": 8,
            "max_relative_positions": -1,
            "norm_rel_ebd": "layer_norm",
        },
        **{"share_att_key": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False},
    },
    # Both forms of the keys, as the hub has them since transformers 5 reads this family itself.
    "nomic_bert": {
        **{**USUAL, "architectures": ["NomicBertModel"], "hidden_act": "silu", "activation_function": "swiglu"},
        **{"n_embd": 16, "n_layer": 2, "n_head": 2, "n_inner": 22, "n_positions": 19, "max_trained_positions": 19},
        **{"layer_norm_epsilon": 1e-12, "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "prenorm": False},
        **{"rotary_emb_interleaved": False, "rotary_scaling_factor": None, "qkv_proj_bias": False},
        **{"mlp_fc1_bias": False, "mlp_fc2_bias": False},
        "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0},
    },
    "gte": {
        **{**USUAL, "architectures": ["GteModel"], "type_vocab_size": 0, "position_embedding_type": "rope"},
        **{"rope_theta": 1000.0, "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0}},
        **{"layer_norm_type": "layer_norm", "pack_qkv": True, "logn_attention_scale": False},
    },
    "modernbert": {
        **{**USUAL, "architectures": ["ModernBertModel"], "hidden_act": ABSENT, "layer_norm_eps": ABSENT},
        **{"hidden_activation": "gelu_pytorch_tanh", "norm_eps": 1e-5, "norm_bias": False, "attention_bias": False},
        **{"eos_token_id": 3, "bos_token_id": 2, "cls_token_id": 2, "sep_token_id": 3, "attention_dropout": 0.0},
        **{"global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "global_attn_every_n_layers": 3},
        **{"local_attention": 128, "classifier_activation": "gelu", "classifier_pooling": "mean"},
        "initializer_cutoff_factor": 2.0,
    },
    # transformers reads neither an epsilon nor `hidden_act` here, and nor does KerasHub.
    "distilbert": {
        **{"architectures": ["DistilBertModel"], "vocab_size": 23, "dim": 16, "n_layers": 2, "n_heads": 2},
        **{"hidden_dim": 22, "activation": "gelu", "max_position_embeddings": 19, "pad_token_id": 0, "dropout": 0.1},
        **{"attention_dropout": 0.1, "layer_norm_eps": 1e-5, "hidden_act": "relu"},
    },
}
MPNET = ["<s>", "<pad>", "</s>", *VOCABULARY[1:2], *VOCABULARY[5:], "<mask>"]
LETTERS = [chr(number) for number in range(33, 127)]
BYTE_LEVEL = ["<s>", "<pad>", "</s>", "<unk>", *LETTERS, "Ġ", "Ġg", "oo", "Ġgoo", "<mask>"]
MERGES = ["#version: 0.2", "Ġ g", "o o", "Ġg oo"]
ROBERTA_SPECIAL = {
    **{"bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>"},
    **{"unk_token": "<unk>", "mask_token": "<mask>"},
}


def relative(family, config=(), **files):
    """A writer of a relative of BERT, whose text is read by BERT's tokenizer unless `files` say otherwise."""

    def to(directory):
        values = merged({**RELATIVES[family], "model_type": family}, dict(config))
        changes = {**{name: ABSENT for name in CONFIG if name not in values}, **values}
        pooling = {"word_embedding_dimension": 16}
        write(directory, relative_tensors(family), {"config.json": changes, "1_Pooling/config.json": pooling, **files})

    return to


def mpnet(directory):
    """Without `tokenizer.json`; the vocabulary is MPNet's."""
    special = {**ROBERTA_SPECIAL, "unk_token": "[UNK]", "tokenizer_class": "MPNetTokenizer"}
    files = {"tokenizer.json": ABSENT, "tokenizer_config.json": special}
    relative("mpnet", {"vocab_size": 23}, **files)(directory)
    (directory / "vocab.txt").write_text("\n".join(MPNET) + "\n", encoding="utf-8")


def roberta(config, segments=0.0):
    """A writer of a RoBERTa with `vocab.json` and `merges.txt`; as in Meta's, its segments add nothing."""
    values = {"model_type": "roberta", "architectures": ["RobertaModel"], "vocab_size": len(BYTE_LEVEL)}
    values |= {"hidden_act": "gelu", "layer_norm_eps": 1e-5, "type_vocab_size": 1, "pad_token_id": 1, **config}

    def to(directory):
        tensors = random_tensors({**CONFIG, **values}, prefix="roberta.")
        tensors["roberta.embeddings.token_type_embeddings.weight"] *= segments
        special = {**dict.fromkeys(TOKENIZER, ABSENT), **ROBERTA_SPECIAL, "model_max_length": 15}
        special["tokenizer_class"] = "RobertaTokenizer"
        lengths = {"max_seq_length": 15}
        files = {"tokenizer.json": ABSENT, "tokenizer_config.json": special, "sentence_bert_config.json": lengths}
        write(directory, tensors, {"config.json": values, **files}, vocabulary=None)
        write_json(directory / "vocab.json", {token: index for index, token in enumerate(BYTE_LEVEL)})
        (directory / "merges.txt").write_text("\n".join(MERGES) + "\n", encoding="utf-8")

    return to


def masked_lm(directory):
    """The encoder with the head, whose matrix is the token matrix."""
    rng = np.random.default_rng(2)
    shapes = {"transform.dense.weight": (15, 15), "transform.dense.bias": (15,), "bias": (23,)}
    shapes |= {f"transform.LayerNorm.{name}": (15,) for name in ("weight", "bias")}
    head = {f"cls.predictions.{name}": rng.normal(0, 0.3, shape).astype("float32") for name, shape in shapes.items()}
    tensors = random_tensors(CONFIG, prefix="bert.", pooler=False) | head
    write(directory, tensors, {**HEADLESS, "config.json": {"architectures": ["BertForMaskedLM"]}})


def old_names(directory):
    """LayerNorm's weights as TensorFlow's converters called them."""
    renamed = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    replace = functools.partial(functools.reduce, lambda name, item: name.replace(*item), renamed.items())
    write(directory, {replace(name): value for name, value in random_tensors(CONFIG).items()})


SWAPPED = [*VOCABULARY[:6], VOCABULARY[7], VOCABULARY[6], *VOCABULARY[8:]]
FILM = {"content": "ilm", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": False}
TRUNCATION = {"direction": "Right", "max_length": 6, "strategy": "LongestFirst", "stride": 0}
NEW_POOLING = {**dict.fromkeys(POOLING, ABSENT), "word_embedding_dimension": ABSENT, "embedding_dimension": 15}
NEW_POOLING |= {"pooling_mode": "cls", "include_prompt": True}
ACTIVATION = {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity", "version": "4.1.0"}}
FAST = {"tokenizer_class": "PreTrainedTokenizerFast"}
UNCASED = {"tokenizer_config.json": {"do_lower_case": True}, "tokenizer.json": {"normalizer": {"lowercase": True}}}

DIFFERENT = (
    Crafted(
        "json_lowers_what_the_config_keeps",
        bert({"tokenizer.json": {"normalizer": {"lowercase": True}}}),
        (TOKENIZERS, SERVER),
        'Ran: "A Good" is [1, 1] in transformers and [5, 6] in tokenizers.',
        "lower",
    ),
    Crafted(
        "json_strips_accents",
        bert({"tokenizer.json": {"normalizer": {"strip_accents": True}}}),
        (TOKENIZERS, SERVER),
        'Ran: "É é" is [10, 11] in transformers and [1, 1] in tokenizers.',
        "accent",
    ),
    Crafted(
        "json_truncates",
        bert({"tokenizer.json": {"truncation": TRUNCATION}}),
        (TOKENIZERS,),
        "Ran: a text of 26 tokens is 17 in transformers and 6 in tokenizers.",
        "truncat",
    ),
    Crafted(
        "token_added_in_the_config_only",
        bert({"tokenizer_config.json": {"added_tokens_decoder": {"8": FILM}}}),
        (TOKENIZERS, SERVER),
        'Ran: "film" is [1, 18] in transformers, which gives the token a new id, and [8] in tokenizers.',
        "added",
    ),
    Crafted(
        "two_vocabularies",
        bert({}, vocabulary=SWAPPED),
        (KERASHUB,),
        'Ran: "good" is 6 in transformers, by tokenizer.json, and 7 in KerasHub, by vocab.txt.',
        r"vocab\.txt",
    ),
    Crafted(
        "first_token_in_the_map_only",
        bert({"tokenizer_config.json": {"cls_token": ABSENT}, "special_tokens_map.json": {"cls_token": "[MASK]"}}),
        (TOKENIZERS, SERVER, KERASHUB),
        "Ran: every text starts with 4 in transformers and with 2 in tokenizers.",
        r"special_tokens_map|cls_token|\[MASK\]|\[CLS\]",
    ),
    Crafted(
        "padding_on_the_left",
        bert({"tokenizer_config.json": {"padding_side": "left"}}),
        (TRANSFORMERS, SENTENCES),
        "Ran: a text has other vectors in a batch (-0.165) than alone (-0.175), as padding moves its positions.",
        "padding_side|left",
        silent="load_task",
    ),
    Crafted(
        "lowered_letters_keep_accents",
        bert(UNCASED),
        (KERASHUB,),
        'Ran: "É" is [1] in transformers, which makes it "e", and [11] in KerasHub, which makes it "é".',
        "accent",
        silent="every",
    ),
    Crafted(
        "gelu_with_the_error_function",
        bert({"config.json": {"hidden_act": "gelu"}}),
        (SERVER, KERASHUB),
        "Ran KerasHub: it computes the tanh form, 0.3019 against 0.3018. Source: backends/candle/src/layers/linear.rs.",
        "gelu",
        silent="every",
    ),
    Crafted(
        "relative_positions",
        relative_keys,
        (TRANSFORMERS,),
        "Ran: the same numbers with and without `position_embedding_type`, which release 4 added to attention.",
        "position",
        silent="read_differently",
    ),
    Crafted(
        "half_precision_stated",
        bert({"config.json": {"torch_dtype": "float16"}}),
        (TRANSFORMERS, SENTENCES),
        "Ran: float32 weights are computed in float16, 0.1760 against 0.1750. Release 4 took float32.",
        "float16|dtype",
    ),
    Crafted(
        "several_labels_at_once",
        headed({**CLASSIFIER, "problem_type": "multi_label_classification"}, 3),
        (SERVER,),
        "Ran: transformers' pipeline takes a sigmoid, 0.84. Source: core/src/infer.rs takes a softmax by the count.",
        "sigmoid|softmax|multi_label|problem_type",
    ),
    Crafted(
        "scores_without_a_sigmoid",
        headed({**RERANKER, **ACTIVATION}, 1),
        (TRANSFORMERS, SERVER),
        "Ran: -0.197 in CrossEncoder and 0.452 in transformers' pipeline. Source: core/src/infer.rs takes a sigmoid.",
        "sigmoid|activation",
    ),
    Crafted(
        "adapter_beside_full_weights",
        with_adapter,
        (SERVER, KERASHUB),
        "Ran with peft 0.21: `from_pretrained` takes the directory's weights and adds the adapter. Others do not look.",
        "adapter",
    ),
    Crafted(
        "two_poolings",
        bert({"1_Pooling/config.json": {"pooling_mode_cls_token": True}}),
        (SERVER, KERASHUB),
        "Ran: 30 values in sentence-transformers, 15 in KerasHub. Source: `PoolConfig` in router/src/lib.rs.",
        "pool",
    ),
    Crafted(
        "pooling_in_the_new_key",
        bert({"1_Pooling/config.json": NEW_POOLING}),
        (KERASHUB, SERVER),
        "Ran: BertTextEmbedder takes the mean, as it looks for `pooling_mode_cls_token`. Release 6 writes this form. "
        "Source: PoolConfig in router/src/lib.rs must have that key.",
        "pool",
    ),
    Crafted(
        "default_prompt",
        bert({"config_sentence_transformers.json": {**PROMPTS, "default_prompt_name": "query"}}),
        (SERVER, KERASHUB),
        "Ran: sentence-transformers puts it before every text. Source: `NewSTConfig` in router/src/lib.rs has no name.",
        "prompt",
    ),
    Crafted(
        "prompt_out_of_the_mean",
        bert({"1_Pooling/config.json": {"include_prompt": False}, "config_sentence_transformers.json": PROMPTS}),
        (SERVER,),
        "Ran: sentence-transformers leaves a prompt's tokens out. Source: no key of `PoolConfig` in router/src/lib.rs.",
        "include_prompt",
        silent="load_task",
    ),
    Crafted(
        "vectors_cut",
        bert({"config_sentence_transformers.json": {"truncate_dim": 4}}),
        (SERVER, KERASHUB),
        "Ran: 4 values in sentence-transformers. Source: router/src/lib.rs, `NewSTConfig` has no such key.",
        "truncate_dim",
    ),
    Crafted(
        "dense_by_its_new_class_name",
        with_dense,
        (SERVER, KERASHUB),
        "Source: backends/src/lib.rs, `ModuleType` knows `sentence_transformers.models` alone, then warns and goes on "
        "without the layer. KerasHub has no dense layer.",
        "Dense|dense",
    ),
    Crafted(
        "lowered_by_sentence_transformers",
        bert({"sentence_bert_config.json": {"do_lower_case": True}}),
        (TRANSFORMERS, SERVER),
        'Ran: "A Good" is [5, 6] in sentence-transformers and [1, 1] in transformers.',
        "lower",
    ),
    Crafted(
        "two_lengths",
        bert({"sentence_bert_config.json": {"max_seq_length": 6}}),
        (TRANSFORMERS,),
        "Ran: 6 tokens of a long text in sentence-transformers, 17 in transformers, by `model_max_length`.",
        "max_seq_length|model_max_length|length",
    ),
    Crafted(
        "classifier_without_its_pooler",
        headed(CLASSIFIER, 3, pooler=False),
        (TRANSFORMERS, SERVER),
        "Ran: other scores at each load, as the layer gets random weights. Source: bert.rs goes on without the layer.",
        "pooler",
        silent="load_task",
    ),
    Crafted(
        "positions_after_padding",
        roberta({"pad_token_id": 0}),
        (KERASHUB,),
        "Ran: transformers starts at position 1, one after `pad_token_id`; KerasHub always at 2.",
        "pad_token_id|position",
    ),
    Crafted(
        "two_rotary_bases",
        relative("nomic_bert", {"rotary_emb_base": 10000}),
        (SERVER,),
        "Ran: transformers reads `rope_parameters`. Source: nomic.rs, `NomicConfig` reads `rotary_emb_base`.",
        "rotary|rope",
        silent="load_backbone",
    ),
)

SAME = (
    Crafted("bert", bert({})),
    Crafted(
        "bert_with_empty_prompts",
        bert(
            {
                "config_sentence_transformers.json": {
                    **{"prompts": {"query": "", "document": ""}, "default_prompt_name": None},
                    "similarity_fn_name": "cosine",
                }
            }
        ),
    ),
    Crafted("bert_classifier_with_labels_in_another_order", headed(CLASSIFIER, 3)),
    Crafted("bert_reranker", headed(RERANKER, 1)),
    Crafted("bert_masked_lm", masked_lm),
    Crafted("bert_with_old_names", old_names),
    Crafted("roberta", roberta({})),
    Crafted("distilbert_with_keys_that_nobody_reads", relative("distilbert", **{"tokenizer.json": ABSENT})),
    Crafted("electra", relative("electra")),
    Crafted("mpnet", mpnet),
    Crafted("albert", relative("albert")),
    Crafted("deberta_v2", relative("deberta-v2")),
    Crafted("nomic_bert", relative("nomic_bert")),
    Crafted("gte", relative("gte")),
    Crafted(
        "modernbert",
        relative("modernbert", **{"tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast"}}),
    ),
)
