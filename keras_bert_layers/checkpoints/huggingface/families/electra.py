"""ELECTRA: BERT, often with a narrower embedding, without a pooler.

The generator is a masked language model. The discriminator, which most checkpoints hold, is a plain encoder.

References:
    Clark et al. 2020, https://arxiv.org/abs/2003.10555; transformers, models/electra/modeling_electra.py.
"""

from keras_bert_layers.checkpoints.huggingface.families.family import CHOICE_CLASS, SEQUENCE_CLASS, Family, TensorNames

ELECTRA = Family(
    title="ELECTRA",
    model_types=("electra",),
    class_prefixes=("Electra",),
    names=TensorNames(
        prefix="electra.",
        tensors={
            "generator_predictions.": "cls.predictions.transform.",
            "generator_lm_head.bias": "cls.predictions.bias",
            "generator_lm_head.weight": "cls.predictions.decoder.weight",
        },
        class_tensors={
            SEQUENCE_CLASS: {"classifier.dense.": "pooler.dense.", "classifier.out_proj.": "classifier."},
            CHOICE_CLASS: {"sequence_summary.summary.": "pooler.dense."},
        },
        ignored={"discriminator_predictions.": "the head that finds replaced tokens"},
        has_one_bias=True,
    ),
    other_classes=frozenset({"ElectraForPreTraining"}),  # the discriminator, whose head is not BERT's
    head_only={
        CHOICE_CLASS: {"summary_type": ("first",), "summary_use_proj": (True,), "summary_activation": ("gelu",)}
    },
    unread=frozenset({"summary_last_dropout", "summary_first_dropout", "summary_proj_to_labels"}),
    has_pooler=False,
    has_projection=True,
    pooler_activation="gelu_erf",
    masked_lm_activation="gelu_erf",
    dropouts={"multiple_choice": ("summary_last_dropout", 0.1)},
    default_tokenizers={"electra": "BertTokenizer"},
)
