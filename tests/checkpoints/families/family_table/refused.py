"""Checkpoints that are refused, each with an error that states the reason."""

from typing import Any

from family_table.configs import BERT, SAVED, UNCASED, XLM_R, modules, tokenizer
from family_table.family import Family


def _other(name: str, model_type: str, architecture: str, note: str, **more: Any) -> Family:
    """A model type other than BERT: its config is refused before anything else is read."""
    config = {**BERT, "model_type": model_type, "architectures": [architecture], **more.pop("config", {})}
    refused = more.pop("refused", f"model_type.*{model_type}")
    return Family(name=name, config=config, note=note, refused=refused, **more)


REFUSED = (
    Family(
        name="tohoku-nlp/bert-base-japanese",
        config={**BERT, "architectures": ["BertForMaskedLM"], "tokenizer_class": "BertJapaneseTokenizer"},
        makes="BertForMaskedLM",
        vocabulary="cased",
        files=tokenizer(
            {
                "do_lower_case": False,
                "model_max_length": 512,
                "subword_tokenizer_type": "wordpiece",
                "word_tokenizer_type": "mecab",
            },
            None,
        ),
        has_tokenizer_json=False,
        refused_text="BertJapaneseTokenizer|mecab|word_tokenizer_type",
        note="MeCab finds its words: token ids only",
    ),
    _other("facebook/dpr-ctx_encoder-single-nq-base", "dpr", "DPRContextEncoder", "its own class around a BERT"),
    _other("microsoft/deberta-base", "deberta", "DebertaForMaskedLM", "other attention, and byte-level BPE"),
    _other(
        "nomic-ai/nomic-embed-text-v2-moe",
        "nomic_bert",
        "NomicBertModel",
        "a mixture of experts",
        config={"moe_every_n_layers": 2, "num_experts": 8},
        refused="moe_every_n_layers.*mixture of experts",
    ),
    _other("google/mobilebert-uncased", "mobilebert", "MobileBertForPreTraining", "bottlenecks, no layer norm"),
    _other(
        "nghuyong/ernie-3.0-base-zh",
        "ernie",
        "ErnieForMaskedLM",
        "embeddings of tasks",
        config={"task_type_vocab_size": 3, "use_task_id": True},
    ),
    _other("google/canine-s", "canine", "CanineModel", "reads characters"),
    _other("google/fnet-base", "fnet", "FNetForPreTraining", "Fourier transforms in place of attention"),
    _other("facebook/esm2_t6_8M_UR50D", "esm", "EsmForMaskedLM", "rotary positions"),
    _other("junnyu/roformer_chinese_base", "roformer", "RoFormerForMaskedLM", "rotary positions"),
    Family(
        name="jinaai/jina-embeddings-v2-base-en",
        config={
            **BERT,
            "architectures": ["JinaBertForMaskedLM"],
            "auto_map": {"AutoModel": "jinaai/jina-bert-implementation--modeling_bert.JinaBertModel"},
            "position_embedding_type": "alibi",
            "feed_forward_type": "geglu",
        },
        files=tokenizer(SAVED) | modules(),
        refused="auto_map|alibi",
        note="a program of its own: ALiBi and gated layers",
    ),
    Family(
        name="vinai/bertweet-base",
        config={
            **XLM_R,
            "architectures": ["RobertaForMaskedLM"],
            "model_type": "roberta",
            "tokenizer_class": "BertweetTokenizer",
            "vocab_size": 300,
        },
        makes="RobertaForMaskedLM",
        reference="RobertaModel",
        vocabulary=None,
        files={"tokenizer_config.json": {"normalization": True}},
        refused_text="BertweetTokenizer|BPE|RoBERTa|roberta|vocab.txt",
        note="fastBPE of words of tweets: token ids only",
    ),
    Family(
        name="google-bert/bert-base-uncased as a decoder",
        config={**BERT, "architectures": ["BertLMHeadModel"], "is_decoder": True},
        files=tokenizer(UNCASED, None),
        refused="is_decoder",
        note="attention to earlier tokens only",
    ),
    Family(
        name="flair/ner-english",
        config=None,  # type: ignore[arg-type]
        vocabulary=None,
        makes="",
        refused="config.json",
        note="flair's own pickle, without a config",
    ),
    Family(
        name="Xenova/all-MiniLM-L6-v2",
        config={**BERT, "architectures": ["BertModel"], "transformers.js_config": {"dtype": "q8"}},
        makes="",
        files=tokenizer(SAVED) | {"onnx/model.onnx": {}},
        refused="onnx|must hold weights",
        note="ONNX files only: no weights",
    ),
    Family(
        name="sentence-transformers/sentence-t5-base",
        config={**BERT, "model_type": "t5", "architectures": ["T5EncoderModel"]},
        files=modules(normalize=True, dense={"in_features": 16, "out_features": 10, "bias": False}),
        refused="model_type.*t5",
        note="T5",
    ),
    _other("nvidia/megatron-bert-uncased-345m", "megatron-bert", "MegatronBertModel", "norms before the blocks"),
    _other(
        "google/bert_for_seq_generation_L-24_bbc_encoder", "bert-generation", "BertGenerationEncoder", "no segments"
    ),
    _other(
        "mrm8488/bert-mini2bert-mini-finetuned-cnn_daily_mail", "encoder-decoder", "EncoderDecoderModel", "two models"
    ),
    _other("YituTech/conv-bert-base", "convbert", "ConvBertModel", "convolutions"),
    _other("squeezebert/squeezebert-uncased", "squeezebert", "SqueezeBertModel", "grouped convolutions"),
    _other("microsoft/layoutlm-base-uncased", "layoutlm", "LayoutLMForMaskedLM", "positions on a page"),
    _other("google/tapas-base", "tapas", "TapasModel", "seven kinds of segments"),
    _other("google/rembert", "rembert", "RemBertForMaskedLM", "another embedding and other heads"),
    _other("allenai/longformer-base-4096", "longformer", "LongformerForMaskedLM", "sparse attention"),
    _other("google/bigbird-roberta-base", "big_bird", "BigBirdForPreTraining", "sparse attention"),
    _other("xlnet/xlnet-base-cased", "xlnet", "XLNetLMHeadModel", "relative positions"),
)
