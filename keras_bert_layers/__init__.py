"""BERT for Keras 3: raw text in, answers out.

Public names are imported when they are first used, so that `import keras_bert_layers` is quick, and code that does not
need TensorFlow runs without it.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from keras_bert_layers._internal.lazy import make_lazy
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
        save_kerashub,
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
    "save_kerashub",
    "tasks",
    "visualization",
]

_HOMES = {
    **{name: "tasks" for name in __all__ if name.startswith("Bert")},
    **{name: "checkpoints" for name in __all__ if name.startswith(("load_", "save_"))},
    "BertBackbone": "backbone",
    "BertConfig": "config",
    "BertPreprocessor": "preprocessing",
    "BertTokenizer": "preprocessing",
}
_SUBPACKAGES = tuple(name for name in __all__ if name not in _HOMES)

# What `keras.models.load_model` must find by name: the public models, the tokenizer, and these; see
# `_internal.registration`.
_REGISTERED = {
    "BertAdamW": "optimizers.adamw",
    "BertLamb": "optimizers.lamb",
    "BertEmbedding": "layers",
    "ClassificationHead": "layers",
    "ConditionalRandomField": "layers",
    "EncoderParts": "layers",
    "EntityF1": "metrics",
    "F1Score": "metrics",
    "FeedForward": "layers",
    "FlattenChoices": "layers",
    "GoogleAdamW": "optimizers.google_adamw",
    "GoogleWarmupLinearDecay": "optimizers",
    "GatedFeedForward": "layers",
    "MaskedAccuracy": "metrics",
    "MaskedLMGenerator": "preprocessing",
    "MaskedLMHead": "layers",
    "MatthewsCorrelation": "metrics",
    "MultipleChoiceHead": "layers",
    "NextSentenceHead": "layers",
    "OfClasses": "tasks._class_metrics",
    "PearsonCorrelation": "metrics",
    "Perplexity": "metrics",
    "Pooler": "layers",
    "RelativePositionBias": "layers",
    "RotaryPositions": "layers",
    "SelfAttention": "layers",
    "SequencePooling": "layers",
    "SinusoidalPositions": "layers",
    "SpanHead": "layers",
    "SentencePieceTokenizer": "preprocessing",
    "SpanPreprocessor": "preprocessing",
    "SpearmanCorrelation": "metrics",
    "TokenClassificationHead": "layers",
    "TransformerEncoderBlock": "layers",
    "Warmup": "optimizers",
    "WarmupLinearDecay": "optimizers",
    "WarmupStableDecay": "optimizers",
}

try:
    __version__ = version("keras-bert-layers")
except PackageNotFoundError:  # used from a checkout that is not installed
    __version__ = "0+unknown"


make_lazy(__name__, {**_HOMES, **dict.fromkeys(_SUBPACKAGES)})
_PUBLIC_CLASSES = {name: home for name, home in _HOMES.items() if name.startswith("Bert") and name != "BertConfig"}
register_stand_ins({name: f"{__name__}.{home}" for name, home in {**_PUBLIC_CLASSES, **_REGISTERED}.items()})
