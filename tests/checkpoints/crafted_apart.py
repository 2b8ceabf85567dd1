"""More small directories, written before their author had seen the rules of `read_differently`.

The conventions are those of crafted_directories.py. Counted before the rules were read: of 25 directories that are read
differently, 14 had an entry, 3 were refused with the reason, and 8 had none; of 9 others, none had an entry.

The count is after three were put right: a product of unit vectors is their cosine, no program reads a head of words
with its own matrix differently, and text-embeddings-inference reads labels of words as labels of texts. Two of those
that all read the same, of GTE and of unit vectors, were added with the rules.
"""

import numpy as np
from crafted_directories import (
    ABSENT,
    CASED_JSON,
    CLASSIFIER,
    CONFIG,
    HEADLESS,
    KERASHUB,
    PROMPTS,
    RERANKER,
    SENTENCES,
    SERVER,
    SPECIAL,
    TOKENIZER,
    TRANSFORMERS,
    UNCASED,
    Crafted,
    bert,
    chain,
    headed,
    merged,
    relative,
    roberta,
    write,
)
from huggingface_checkpoint import random_tensors


def settings(**changes):
    """A writer of a BERT whose `tokenizer_config.json` has these changes."""
    return bert({"tokenizer_config.json": changes})


def configured(**changes):
    """A writer of a BERT whose `config.json` has these changes."""
    return bert({"config.json": changes})


def prompted(**changes):
    """A writer of a BERT whose `config_sentence_transformers.json` has these values."""
    return bert({"config_sentence_transformers.json": changes})


def masked(decoder=False, renamed=False, **files):
    """A writer of an encoder with pooler and the head of words, its own matrix or LayerNorm's old names."""
    rng = np.random.default_rng(2)
    shapes = {"transform.dense.weight": (15, 15), "transform.dense.bias": (15,), "bias": (23,)}
    shapes |= {f"transform.LayerNorm.{name}": (15,) for name in ("weight", "bias")}
    shapes |= {"decoder.weight": (23, 15)} if decoder else {}
    head = {f"cls.predictions.{name}": rng.normal(0, 0.3, shape).astype("float32") for name, shape in shapes.items()}
    tensors = random_tensors(CONFIG, prefix="bert.") | head
    if renamed:
        old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
        for new, name in old.items():
            tensors = {key.replace(new, name): value for key, value in tensors.items()}
    changes = {**HEADLESS, "config.json": {"architectures": ["BertForMaskedLM"]}, **files}
    return lambda directory: write(directory, tensors, changes)


def one_more_token(directory):
    """A token that training added, in `tokenizer.json` and the token matrix alone."""
    more = {**CASED_JSON["added_tokens"][0], "id": 23, "content": "zoo", "normalized": True, "special": False}
    changes = {"config.json": {"vocab_size": 24}}
    changes["tokenizer.json"] = {"added_tokens": [*CASED_JSON["added_tokens"], more]}
    write(directory, random_tensors({**CONFIG, "vocab_size": 24}), changes)


def headless_classifier(directory):
    """A classifier's config over the encoder alone, as when a classifier was trained further to embed."""
    write(directory, random_tensors(CONFIG, prefix="bert."), {"config.json": CLASSIFIER})


DIFFERENT = (
    Crafted(
        "class_lowers_what_the_json_keeps",
        settings(do_lower_case=True),
        (SERVER,),
        'Ran: "A Good" is [5, 6] in transformers and [1, 1] in tokenizers, which the server uses.',
        "lower|case",
    ),
    Crafted(
        "case_not_stated",
        settings(do_lower_case=ABSENT),
        (KERASHUB, SERVER),
        'Ran: transformers lowers, tokenizers does not, and KerasHub ends with KeyError: "do_lower_case".',
        "lower|case",
    ),
    Crafted(
        "class_keeps_accents",
        bert(merged(UNCASED, {"tokenizer_config.json": {"strip_accents": False}})),
        (SERVER,),
        'Ran: "é" is [11] in transformers and [1] in tokenizers.',
        "accent",
    ),
    Crafted(
        "class_keeps_chinese_together",
        settings(tokenize_chinese_chars=False),
        (SERVER, KERASHUB),
        'Ran: "中中" is [1] in transformers, [14, 14] in tokenizers and KerasHub.',
        "[Cc]hinese",
    ),
    Crafted(
        "another_start_in_the_special_map",
        bert({"special_tokens_map.json": {**SPECIAL, "cls_token": "##ful"}}),
        (SERVER, KERASHUB),
        "Ran: texts begin with 17 in transformers, whose class takes the older file's, and with 2 in tokenizers.",
        "##ful|special",
    ),
    Crafted(
        "no_post_processor",
        bert({"tokenizer.json": {"post_processor": None}}),
        (SERVER,),
        'Ran: "a" is [2, 5, 3] in transformers and [5] in tokenizers.',
        "[Cc][Ll][Ss]|special|post",
    ),
    Crafted(
        "token_added_in_the_json_only",
        one_more_token,
        (KERASHUB,),
        'Ran: "zoo" is [23] in transformers and tokenizers, and [1] in KerasHub, which reads vocab.txt.',
        "zoo|23|added",
    ),
    Crafted(
        "tokenizer_shorter_than_the_module",
        settings(model_max_length=9),
        (TRANSFORMERS,),
        "Ran: a long text is 9 tokens in transformers and 17 in sentence-transformers.",
        "9",
    ),
    Crafted(
        "padding_on_the_left",
        settings(padding_side="left"),
        (TRANSFORMERS, SENTENCES),
        "Ran: sentence-transformers' vector of a text moves by 0.016 when a longer one is beside it.",
        "left",
        silent="load_task",
    ),
    Crafted(
        "truncation_on_the_left",
        settings(truncation_side="left"),
        (SERVER, KERASHUB),
        "Ran: transformers keeps the last tokens. Source: the server cuts on the right unless a request says so.",
        "truncat",
    ),
    Crafted(
        "two_ways_of_pooling",
        bert({"1_Pooling/config.json": {"pooling_mode_cls_token": True}}),
        (SERVER, KERASHUB),
        "Ran: 30 numbers in sentence-transformers. Source: router/src/lib.rs and KerasHub's convert_bert.py take cls.",
        "cls|CLS",
    ),
    Crafted(
        "prompt_by_default",
        prompted(**PROMPTS, default_prompt_name="query"),
        (SERVER, KERASHUB),
        "Ran: sentence-transformers puts the prompt first. Source: router/src/lib.rs has its own option.",
        "prompt",
    ),
    Crafted(
        "prompt_not_pooled",
        bert({"config_sentence_transformers.json": PROMPTS, "1_Pooling/config.json": {"include_prompt": False}}),
        (SERVER,),
        "Source: PoolConfig in router/src/lib.rs has no such key, so the prompt is in the mean.",
        "prompt",
        silent="load_task",
    ),
    Crafted(
        "dot_product",
        bert({"config_sentence_transformers.json": {"similarity_fn_name": "dot"}, "modules.json": chain("Pooling")}),
        (SENTENCES,),
        "Ran: its `similarity` is a product. Source: router/src/http/server.rs answers /similarity with the cosine.",
        "dot|cosine",
    ),
    Crafted(
        "half_stated_over_float32",
        configured(torch_dtype="bfloat16"),
        (TRANSFORMERS, SENTENCES),
        "Ran: transformers and sentence-transformers compute in bfloat16, KerasHub in float32.",
        "bfloat16",
    ),
    Crafted(
        "decoder",
        configured(is_decoder=True),
        (SERVER, KERASHUB),
        "Ran: transformers' vectors are those of causal attention. Source: models/bert.rs has no such key.",
        "decoder|causal",
        silent="read_differently",
    ),
    Crafted(
        "classifier_stated_encoder_stored",
        headless_classifier,
        (SERVER,),
        "Ran: sentence-transformers embeds. Source: get_backend_model_type takes a classifier, which has no weights.",
        "lassif",
    ),
    Crafted(
        "several_labels_at_once",
        headed({**CLASSIFIER, "problem_type": "multi_label_classification"}, 3),
        (SERVER, SENTENCES),
        "Ran: transformers' pipeline takes sigmoids, CrossEncoder nothing. Source: core/src/infer.rs takes a softmax.",
        "softmax|sigmoid|multi",
    ),
    Crafted(
        "labels_of_words",
        headed({**CLASSIFIER, "architectures": ["BertForTokenClassification"]}, 3),
        (SERVER,),
        "Source: router/src/lib.rs takes every name that ends with Classification as a classifier of texts.",
        "word|token",
    ),
    Crafted(
        "no_epsilon",
        configured(layer_norm_eps=ABSENT),
        (SERVER,),
        "Ran: transformers takes 1e-12. Source: BertConfig in models/bert.rs must have it.",
        "layer_norm_eps",
    ),
    Crafted(
        "class_without_segments",
        headed(CLASSIFIER, 3, **{"tokenizer_config.json": {"tokenizer_class": "DistilBertTokenizer"}}),
        (TRANSFORMERS, SENTENCES),
        "Ran: transformers gives a pair no segments, tokenizers 0 and 1.",
        "egment|DistilBert|token_type",
    ),
    Crafted(
        "roberta_without_a_padding_id",
        roberta({"pad_token_id": ABSENT}),
        (SERVER,),
        "Ran: transformers counts positions from 2. Source: BertConfig in models/bert.rs must have the key.",
        "pad",
    ),
    Crafted(
        "module_longer_than_the_positions",
        bert({"sentence_bert_config.json": {"max_seq_length": 64}}),
        (SENTENCES, SERVER),
        "Ran: sentence-transformers takes 64 tokens and ends with RuntimeError, transformers takes 17.",
        "64",
    ),
    Crafted(
        "classifier_without_labels",
        headed({"architectures": ["BertForSequenceClassification"]}, 2),
        (SERVER,),
        "Ran: transformers has two labels by default. Source: router/src/lib.rs must have `id2label`.",
        "id2label",
    ),
    Crafted(
        "another_activation",
        configured(hidden_act="relu"),
        (KERASHUB,),
        "Ran: transformers computes relu. Source: KerasHub's convert_bert.py reads no activation.",
        "relu",
    ),
)

PARTS = {str(token["id"]): {key: token[key] for key in token if key != "id"} for token in CASED_JSON["added_tokens"]}
SHORT_TOKENIZER = dict.fromkeys(set(TOKENIZER) - {"do_lower_case", "model_max_length"}, ABSENT)
SAME = (
    Crafted(
        "mean_as_written_in_2021",
        bert(
            {
                "config.json": {"gradient_checkpointing": False, "transformers_version": "4.8.2", "use_cache": True},
                "tokenizer_config.json": {"name_or_path": "x/y", "do_basic_tokenize": True, "never_split": None},
                "special_tokens_map.json": SPECIAL,
                "config_sentence_transformers.json": {"__version__": {"sentence_transformers": "2.0.0"}},
            }
        ),
    ),
    Crafted(
        "first_token",
        bert({"1_Pooling/config.json": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}}),
    ),
    Crafted(
        "as_written_in_2025",
        bert(
            {
                "config.json": {"dtype": "float32", "transformers_version": "4.57.1", "classifier_dropout": None},
                "1_Pooling/config.json": {"pooling_mode_lasttoken": False, "include_prompt": True},
                "tokenizer_config.json": {"added_tokens_decoder": PARTS, "extra_special_tokens": {}},
                "config_sentence_transformers.json": {
                    "model_type": "SentenceTransformer",
                    "prompts": {"query": "", "document": ""},
                    "default_prompt_name": None,
                    "similarity_fn_name": "cosine",
                },
            }
        ),
    ),
    Crafted("prompts_by_name", prompted(**PROMPTS, default_prompt_name=None, similarity_fn_name="cosine")),
    Crafted("three_labels", headed({**CLASSIFIER, "problem_type": "single_label_classification"}, 3)),
    Crafted("one_score", headed(RERANKER, 1)),
    Crafted("head_of_words_with_its_own_matrix", masked(decoder=True)),
    Crafted("gte_under_another_name", relative("gte", {"architectures": ["NewForTokenClassification"]})),
    Crafted("dot_product_of_unit_vectors", prompted(similarity_fn_name="dot")),
    Crafted("words_under_old_names", masked(renamed=True, **{"tokenizer_config.json": SHORT_TOKENIZER})),
    Crafted(
        "special_tokens_written_out",
        bert(
            {
                "tokenizer_config.json": {"clean_up_tokenization_spaces": True, "padding_side": "right"},
                "special_tokens_map.json": {
                    name: {
                        "content": token,
                        "lstrip": False,
                        "normalized": False,
                        "rstrip": False,
                        "single_word": False,
                    }
                    for name, token in SPECIAL.items()
                },
            }
        ),
    ),
)
