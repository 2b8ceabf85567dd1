"""BERT for Keras 3: raw text in, answers out.

Every public name is imported when it is first used, so that `import keras_bert_layers` is quick and what needs no
TensorFlow runs without it.
"""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from keras_bert_layers._internal.registration import register_stand_ins

if TYPE_CHECKING:
    from keras_bert_layers import (
        checkpoints,
        data,
        decoding,
        export,
        layers,
        metrics,
        optimizers,
        preprocessing,
        presets,
        tasks,
        visualization,
    )
    from keras_bert_layers.backbone import BertBackbone
    from keras_bert_layers.checkpoints import (
        load_backbone,
        load_preprocessor,
        load_task,
        load_tokenizer,
        save_google,
        save_huggingface,
    )
    from keras_bert_layers.config import BertConfig
    from keras_bert_layers.preprocessing import BertPreprocessor, BertTokenizer
    from keras_bert_layers.tasks import (
        BertClassifier,
        BertCrossEncoder,
        BertDualEncoder,
        BertMaskedLM,
        BertMultipleChoice,
        BertPretrainer,
        BertQuestionAnswerer,
        BertSentenceEncoder,
        BertTokenClassifier,
    )

_HOMES = {
    "BertBackbone": "backbone",
    "BertClassifier": "tasks",
    "BertConfig": "config",
    "BertCrossEncoder": "tasks",
    "BertDualEncoder": "tasks",
    "BertMaskedLM": "tasks",
    "BertMultipleChoice": "tasks",
    "BertPreprocessor": "preprocessing",
    "BertPretrainer": "tasks",
    "BertQuestionAnswerer": "tasks",
    "BertSentenceEncoder": "tasks",
    "BertTokenClassifier": "tasks",
    "BertTokenizer": "preprocessing",
    "load_backbone": "checkpoints",
    "load_preprocessor": "checkpoints",
    "load_task": "checkpoints",
    "load_tokenizer": "checkpoints",
    "save_google": "checkpoints",
    "save_huggingface": "checkpoints",
}
_SUBPACKAGES = (
    "checkpoints",
    "data",
    "decoding",
    "export",
    "layers",
    "metrics",
    "optimizers",
    "preprocessing",
    "presets",
    "tasks",
    "visualization",
)

# What `keras.models.load_model` must find by name; `_internal.registration` says how.
_REGISTERED = {
    "BertAdamW": "optimizers.adamw",
    "BertBackbone": "backbone",
    "BertClassifier": "tasks",
    "BertCrossEncoder": "tasks",
    "BertDualEncoder": "tasks",
    "BertEmbedding": "layers",
    "BertMaskedLM": "tasks",
    "BertMultipleChoice": "tasks",
    "BertPreprocessor": "preprocessing",
    "BertPretrainer": "tasks",
    "BertQuestionAnswerer": "tasks",
    "BertSentenceEncoder": "tasks",
    "BertTokenClassifier": "tasks",
    "BertTokenizer": "preprocessing",
    "ClassificationHead": "layers",
    "ConditionalRandomField": "layers",
    "EntityF1": "metrics",
    "F1Score": "metrics",
    "FeedForward": "layers",
    "FlattenChoices": "layers",
    "MaskedAccuracy": "metrics",
    "MaskedLMGenerator": "preprocessing",
    "MaskedLMHead": "layers",
    "MatthewsCorrelation": "metrics",
    "MultipleChoiceHead": "layers",
    "NextSentenceHead": "layers",
    "PearsonCorrelation": "metrics",
    "Perplexity": "metrics",
    "Pooler": "layers",
    "SelfAttention": "layers",
    "SequencePooling": "layers",
    "SpanHead": "layers",
    "SpanPreprocessor": "preprocessing",
    "SpearmanCorrelation": "metrics",
    "TokenClassificationHead": "layers",
    "TransformerEncoderBlock": "layers",
    "WarmupLinearDecay": "optimizers",
}

__all__ = [
    "BertBackbone",
    "BertClassifier",
    "BertConfig",
    "BertCrossEncoder",
    "BertDualEncoder",
    "BertMaskedLM",
    "BertMultipleChoice",
    "BertPreprocessor",
    "BertPretrainer",
    "BertQuestionAnswerer",
    "BertSentenceEncoder",
    "BertTokenClassifier",
    "BertTokenizer",
    "checkpoints",
    "data",
    "decoding",
    "export",
    "layers",
    "load_backbone",
    "load_preprocessor",
    "load_task",
    "load_tokenizer",
    "metrics",
    "optimizers",
    "preprocessing",
    "presets",
    "save_google",
    "save_huggingface",
    "tasks",
    "visualization",
]

try:
    __version__ = version("keras-bert-layers")
except PackageNotFoundError:  # used from a checkout that is not installed
    __version__ = "0+unknown"


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _HOMES:
        value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


register_stand_ins({name: f"{__name__}.{home}" for name, home in _REGISTERED.items()})
