"""DistilBERT: BERT without segments and without a pooler.

References:
    Sanh et al. 2019, https://arxiv.org/abs/1910.01108; transformers, models/distilbert/modeling_distilbert.py.
"""

from keras_bert_layers.checkpoints.huggingface.families.family import CHOICE_CLASS, SEQUENCE_CLASS, Family, TensorNames

_PRE_CLASSIFIER = {"pre_classifier.": "pooler.dense."}
_HEAD_DROPOUT = ("seq_classif_dropout", 0.2)

DISTILBERT = Family(
    title="DistilBERT",
    model_types=("distilbert",),
    class_prefixes=("DistilBert",),
    names=TensorNames(
        prefix="distilbert.",
        block="transformer.layer.",
        block_tensors={
            "attention.q_lin.": "attention.self.query.",
            "attention.k_lin.": "attention.self.key.",
            "attention.v_lin.": "attention.self.value.",
            "attention.out_lin.": "attention.output.dense.",
            "sa_layer_norm.": "attention.output.LayerNorm.",
            "ffn.lin1.": "intermediate.dense.",
            "ffn.lin2.": "output.dense.",
            "output_layer_norm.": "output.LayerNorm.",
        },
        tensors={
            "vocab_transform.": "cls.predictions.transform.dense.",
            "vocab_layer_norm.": "cls.predictions.transform.LayerNorm.",
            "vocab_projector.bias": "cls.predictions.bias",
            "vocab_projector.weight": "cls.predictions.decoder.weight",
        },
        class_tensors={SEQUENCE_CLASS: _PRE_CLASSIFIER, CHOICE_CLASS: _PRE_CLASSIFIER},
        has_one_bias=True,
    ),
    keys={
        "dim": "hidden_size",
        "n_layers": "num_hidden_layers",
        "n_heads": "num_attention_heads",
        "hidden_dim": "intermediate_size",
        "activation": "hidden_act",
        "dropout": "hidden_dropout_prob",
        "attention_dropout": "attention_probs_dropout_prob",
    },
    constants={"type_vocab_size": 0, "layer_norm_eps": 1e-12},
    # The sinusoidal positions are in the file of weights, like learned ones. `qa_dropout` is for training only.
    unread=frozenset({"sinusoidal_pos_embds", "qa_dropout", "tie_weights_", "embedding_size"})
    | {"hidden_act", "intermediate_size", "hidden_dropout_prob", "attention_probs_dropout_prob"},
    has_pooler=False,
    pooler_activation="relu",
    dropouts={
        **dict.fromkeys(("classifier", "cross_encoder", "multiple_choice"), _HEAD_DROPOUT),
        "token_classifier": None,
    },
    tokenizer_class="DistilBertTokenizer",  # which gives no segment ids
    default_tokenizers={"distilbert": "BertTokenizer"},
)
