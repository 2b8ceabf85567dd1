"""XLM-RoBERTa, CamemBERT and RoBERTa: BERT whose positions begin after the id of padding.

References:
    Conneau et al. 2020, https://arxiv.org/abs/1911.02116; transformers, models/xlm_roberta/modeling_xlm_roberta.py.
    Liu et al. 2019, https://arxiv.org/abs/1907.11692; transformers, models/roberta/modeling_roberta.py.
"""

import dataclasses

from keras_bert_layers.checkpoints.huggingface.families.family import ROBERTA_HEADS, Family, TensorNames

# CamemBERT has the same weights.
XLM_ROBERTA = Family(
    title="XLM-RoBERTa",
    model_types=("xlm-roberta", "camembert"),
    class_prefixes=("XLMRoberta", "Camembert"),
    names=TensorNames(
        prefix="roberta.",
        **ROBERTA_HEADS,
    ),
    masked_lm_activation="gelu_erf",
    dropouts={"multiple_choice": None},
    counts_padding=True,
    default_tokenizers={"xlm-roberta": "XLMRobertaTokenizer", "camembert": "CamembertTokenizer"},
)

# The same with a byte-level BPE.
ROBERTA = dataclasses.replace(
    XLM_ROBERTA,
    title="RoBERTa",
    model_types=("roberta",),
    class_prefixes=("Roberta",),
    default_tokenizers={"roberta": "RobertaTokenizer"},
)
