"""Directories of sentence-transformers."""

from family_table.configs import (
    BERT,
    CAMEMBERT,
    DECODER,
    DISTILBERT,
    POOLER,
    SAVED,
    SAVED_CASED,
    SAVED_SLOW,
    XLM_R,
    XLM_R_DECODER,
    XLM_R_SAVED,
    XLM_R_SPECIAL,
    labels,
    modules,
    tokenizer,
)
from family_table.family import Family

_BARE = {"architectures": ["BertModel"]}
_BIN = {"weights_file": "pytorch_model.bin", "has_positions": True}
_IDENTITY = "torch.nn.modules.linear.Identity"
_TANH = "torch.nn.modules.activation.Tanh"
_ENCODER = {"makes": "BertModel", "task": "sentence_encoder"}
_DISTILBERT = {"makes": "DistilBertModel", "task": "sentence_encoder"}
_XLM_R = {"makes": "XLMRobertaModel", "task": "sentence_encoder", "vocabulary": "xlm-r"}
_DISTIL = {**DISTILBERT, "architectures": ["DistilBertModel"]}
_ROBERTA = {**XLM_R, "architectures": ["XLMRobertaModel"]}
_SEARCH = "Represent this sentence for searching relevant passages: "


def _dense(size: int, activation: str = _TANH, *, bias: bool = True) -> dict[str, object]:
    return {"in_features": 16, "out_features": size, "bias": bias, "activation_function": activation}


_SPARSE = "sentence_transformers.sparse_encoder.models"

SENTENCE_ENCODERS = (
    Family(
        name="sentence-transformers/all-MiniLM-L6-v2",
        config={**BERT, **_BARE},
        files=tokenizer({**SAVED_SLOW, "tokenizer_class": "BertTokenizer"}) | modules(normalize=True, max_length=32),
        has_positions=True,
        **_ENCODER,
    ),
    Family(
        name="sentence-transformers/all-MiniLM-L12-v2",
        config={**BERT, **_BARE},
        files=tokenizer(SAVED_SLOW) | modules(normalize=True, max_length=24),
        **_ENCODER,
        **_BIN,
    ),
    Family(
        name="sentence-transformers/paraphrase-MiniLM-L6-v2",
        config={**BERT, **_BARE},
        files=tokenizer(SAVED_SLOW) | modules(max_length=28),
        has_positions=True,
        **_ENCODER,
    ),
    Family(
        name="sentence-transformers/multi-qa-MiniLM-L6-cos-v1",
        config={**BERT, **_BARE},
        files=tokenizer(SAVED_SLOW) | modules(normalize=True),
        has_positions=True,
        **_ENCODER,
    ),
    Family(
        name="sentence-transformers/bert-base-nli-mean-tokens",
        config={**BERT, **_BARE},
        files=tokenizer({"do_lower_case": True, **SAVED}, added={}) | modules(max_length=28),
        has_positions=True,
        **_ENCODER,
    ),
    Family(
        name="sentence-transformers/LaBSE",
        config={**BERT, **POOLER, **_BARE},
        vocabulary="cased",
        files=tokenizer(SAVED_CASED) | modules("cls", dense=_dense(16), normalize=True, max_length=26),
        note="a dense layer with tanh",
        has_positions=True,
        **_ENCODER,
    ),
    Family(
        name="sentence-transformers/distiluse-base-multilingual-cased-v1",
        config=_DISTIL,
        vocabulary="cased",
        files=tokenizer({**SAVED_CASED, "tokenizer_class": "DistilBertTokenizer"})
        | modules(dense=_dense(10), max_length=28),
        note="DistilBERT with a dense layer",
        **_DISTILBERT,
    ),
    Family(
        name="sentence-transformers/multi-qa-distilbert-cos-v1",
        config=_DISTIL,
        files=tokenizer({**SAVED, "tokenizer_class": "DistilBertTokenizer"}) | modules(normalize=True),
        **_DISTILBERT,
    ),
    Family(
        name="sentence-transformers/msmarco-distilbert-base-tas-b",
        config=_DISTIL,
        files=tokenizer({**SAVED, "tokenizer_class": "DistilBertTokenizer"}) | modules("cls"),
        **_DISTILBERT,
    ),
    Family(
        name="sentence-transformers/msmarco-distilbert-base-v4",
        config=_DISTIL,
        files=tokenizer({**SAVED, "tokenizer_class": "DistilBertTokenizer"}) | modules(),
        weights_file="pytorch_model.bin",
        **_DISTILBERT,
    ),
    Family(
        name="sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
        config={**BERT, **_BARE},
        makes="BertModel",
        task="sentence_encoder",
        vocabulary="xlm-r",
        files=tokenizer(
            {
                **XLM_R_SPECIAL,
                "do_lower_case": True,
                "strip_accents": None,
                "tokenize_chinese_chars": True,
                "model_max_length": 512,
                "tokenizer_class": "PreTrainedTokenizerFast",
            },
            XLM_R_SPECIAL,
        )
        | modules(max_length=28),
        note="BERT with XLM-RoBERTa's tokenizer",
        has_positions=True,
    ),
    Family(
        name="sentence-transformers/paraphrase-multilingual-mpnet-base-v2",
        config=_ROBERTA,
        files=tokenizer(XLM_R_SAVED, XLM_R_SPECIAL) | modules(max_length=28),
        note="XLM-RoBERTa in spite of its name",
        has_positions=True,
        **_XLM_R,
    ),
    Family(
        name="BAAI/bge-small-en-v1.5",
        config={**BERT, **_BARE, **labels("LABEL_0"), "torch_dtype": "float32", "classifier_dropout": None},
        files=tokenizer({**DECODER, "do_basic_tokenize": True, "never_split": None})
        | modules("cls", normalize=True, lowercase=True),
        has_positions=True,
        **_ENCODER,
    ),
    Family(
        name="BAAI/bge-base-zh-v1.5",
        config={
            **BERT,
            **POOLER,
            **_BARE,
            **labels("LABEL_0"),
            "bos_token_id": 0,
            "eos_token_id": 2,
            "output_past": True,
        },
        files=tokenizer({**DECODER, "do_basic_tokenize": True, "never_split": None})
        | modules("cls", normalize=True, lowercase=True),
        weights_file="pytorch_model.bin",
        has_positions=True,
        **_ENCODER,
    ),
    Family(
        name="BAAI/bge-m3",
        config={**_ROBERTA, "torch_dtype": "float32"},
        files=tokenizer(XLM_R_DECODER, XLM_R_SPECIAL) | modules("cls", normalize=True, max_length=8192),
        note="its dense vectors",
        weights_file="pytorch_model.bin",
        **{**_XLM_R, "vocabulary": "xlm-r-collapsed"},
    ),
    Family(
        name="intfloat/e5-base-v2",
        config={**BERT, **_BARE},
        files=tokenizer(SAVED_SLOW) | modules(normalize=True),
        note='prompts "query: " and "passage: " are yours to write',
        has_positions=True,
        **_ENCODER,
    ),
    Family(
        name="intfloat/multilingual-e5-small",
        config={**BERT, **_BARE, "tokenizer_class": "XLMRobertaTokenizer"},
        makes="BertModel",
        task="sentence_encoder",
        vocabulary="xlm-r-collapsed",
        files=tokenizer(XLM_R_SAVED, XLM_R_SPECIAL) | modules(normalize=True),
        note="BERT with XLM-RoBERTa's tokenizer",
        has_positions=True,
    ),
    Family(
        name="intfloat/multilingual-e5-base",
        config=_ROBERTA,
        files=tokenizer(XLM_R_SAVED, XLM_R_SPECIAL) | modules(normalize=True),
        has_positions=True,
        **{**_XLM_R, "vocabulary": "xlm-r-collapsed"},
    ),
    Family(
        name="thenlper/gte-base",
        config={**BERT, **_BARE, "torch_dtype": "float16"},
        files=tokenizer(SAVED_SLOW) | modules(normalize=True),
        note="float16 weights",
        dtype="float16",
        has_positions=True,
        **_ENCODER,
    ),
    Family(
        name="mixedbread-ai/mxbai-embed-large-v1",
        config={**BERT, **_BARE, "torch_dtype": "float16", "use_cache": False, "classifier_dropout": None},
        files=tokenizer(DECODER)
        | modules(
            "cls", prompts={"query": _SEARCH, "passage": ""}, default_prompt_name=None, similarity_fn_name="cosine"
        ),
        note="prompts by name",
        dtype="float16",
        **_ENCODER,
    ),
    Family(
        name="Snowflake/snowflake-arctic-embed-m",
        config={**BERT, **_BARE, "torch_dtype": "float32", "classifier_dropout": None},
        files=tokenizer({**DECODER, "max_length": 512, "padding_side": "right", "truncation_side": "right"})
        | modules("cls", normalize=True, prompts={"query": _SEARCH}, default_prompt_name=None),
        note="a prompt for queries",
        **_ENCODER,
    ),
    Family(
        name="shibing624/text2vec-base-chinese",
        config={**BERT, **POOLER, **_BARE, "bos_token_id": 0, "eos_token_id": 2, "output_past": True},
        files=tokenizer({**SAVED_SLOW, "never_split": None}) | modules(max_length=28),
        has_positions=True,
        **_ENCODER,
    ),
    Family(
        name="cointegrated/rubert-tiny2",
        config={
            **BERT,
            "architectures": ["BertForPreTraining"],
            "emb_size": 16,
            "gradient_checkpointing": False,
        },
        makes="BertForPreTraining",
        task="sentence_encoder",
        vocabulary="five_first_cased",
        files=tokenizer({**SAVED_CASED, "do_basic_tokenize": True, "never_split": None, "model_max_length": 2048})
        | modules("cls", normalize=True, max_length=2048),
        note="the heads of pretraining beside a sentence encoder",
        has_positions=True,
    ),
    Family(
        name="ai-forever/sbert_large_nlu_ru",
        config={**BERT, **_BARE},
        vocabulary="five_first",
        files=tokenizer({"do_lower_case": True, "max_len": 512, "init_inputs": []}),
        note="no files of sentence-transformers: the pooling must be given",
        makes="BertModel",
        **_BIN,
    ),
    Family(
        name="dangvantuan/sentence-camembert-base",
        config={**CAMEMBERT, "architectures": ["CamembertModel"]},
        makes="CamembertModel",
        task="sentence_encoder",
        vocabulary="camembert",
        files=tokenizer({"model_max_length": 512, "tokenizer_class": "CamembertTokenizer"}, None)
        | modules(max_length=28),
        has_positions=True,
    ),
    Family(
        name="aspire/acge_text_embedding",
        config={**BERT, **POOLER, **_BARE, "bos_token_id": 0, "eos_token_id": 2, "output_past": True},
        files=tokenizer(DECODER) | modules(dense=_dense(28, _IDENTITY), max_length=32),
        note="a wider dense layer without activation",
        **_ENCODER,
    ),
    Family(
        name="sentence-transformers/clip-ViT-B-32-multilingual-v1",
        config=_DISTIL,
        vocabulary="cased",
        files=tokenizer({**SAVED_CASED, "tokenizer_class": "DistilBertTokenizer"})
        | modules(dense=_dense(10, _IDENTITY, bias=False), max_length=28),
        note="a dense layer without bias",
        **_DISTILBERT,
    ),
    Family(
        name="sentence-transformers/all-distilroberta-v1",
        config={**XLM_R, "architectures": ["RobertaModel"], "model_type": "roberta"},
        makes="RobertaModel",
        task="sentence_encoder",
        vocabulary="byte-level",
        files=tokenizer({"model_max_length": 512, "tokenizer_class": "RobertaTokenizer"}, XLM_R_SPECIAL)
        | modules(normalize=True),
        note="byte-level BPE",
    ),
    Family(
        name="sentence-transformers/use-cmlm-multilingual",
        config={**BERT, **POOLER, **_BARE},
        vocabulary="cased",
        files=tokenizer(SAVED_CASED) | modules(normalize=True, max_length=26),
        **_ENCODER,
    ),
    Family(
        name="WhereIsAI/UAE-Large-V1",
        config={**BERT, **_BARE, "torch_dtype": "float32", "use_cache": False},
        files=tokenizer(DECODER) | modules("cls", prompts={"query": _SEARCH}),
        note="a prompt for queries",
        **_ENCODER,
    ),
    Family(
        name="Snowflake/snowflake-arctic-embed-l-v2.0",
        config={**_ROBERTA, "torch_dtype": "float32"},
        files=tokenizer(XLM_R_DECODER, XLM_R_SPECIAL)
        | modules("cls", normalize=True, prompts={"query": "query: "}, default_prompt_name=None),
        note="a prompt for queries",
        **{**_XLM_R, "vocabulary": "xlm-r-stripped"},
    ),
    Family(
        name="intfloat/multilingual-e5-large-instruct",
        config={**_ROBERTA, "torch_dtype": "float16"},
        files=tokenizer(XLM_R_DECODER, XLM_R_SPECIAL) | modules(normalize=True),
        dtype="float16",
        **{**_XLM_R, "vocabulary": "xlm-r-collapsed"},
    ),
    Family(
        name="moka-ai/m3e-base",
        config={**BERT, **POOLER, **_BARE},
        files=tokenizer({**SAVED, "tokenizer_class": "BertTokenizer"}) | modules(max_length=28),
        **_ENCODER,
    ),
    Family(
        name="naver/splade-v3",
        config={**BERT, "architectures": ["BertForMaskedLM"]},
        makes="BertForMaskedLM",
        files=tokenizer(SAVED)
        | {
            "modules.json": [
                {"idx": 0, "name": "0", "path": "", "type": f"{_SPARSE}.MLMTransformer"},
                {"idx": 1, "name": "1", "path": "1_SpladePooling", "type": f"{_SPARSE}.SpladePooling"},
            ],
            "1_SpladePooling/config.json": {"pooling_strategy": "max", "activation_function": "relu"},
        },
        reference="BertForMaskedLM",
        task="sparse_encoder",
        note="sparse vectors",
    ),
)
