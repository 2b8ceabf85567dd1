"""BERT for Keras 3: raw text in, answers out.

Public names are imported when they are first used, so that `import keras_bert_layers` is quick, and code that does not
need TensorFlow runs without it.
"""

from importlib.metadata import PackageNotFoundError, version

from keras_bert_layers._internal.lazy import make_lazy
from keras_bert_layers._internal.registration import register_stand_ins

# What `keras.models.load_model` must find by name: the public models, the tokenizer, and these; see
# `_internal.registration`.
_REGISTERED = {
    "BertAdamW": "optimizers.adamw",
    "BertLamb": "optimizers.lamb",
    "BertEmbedding": "layers",
    "BytePairTokenizer": "preprocessing",
    "CalibrationError": "metrics",
    "ClassificationHead": "layers",
    "CombinedTasks": "tasks",
    "ConditionalRandomField": "layers",
    "EncoderParts": "layers",
    "EntityF1": "metrics",
    "F1Score": "metrics",
    "FeedForward": "layers",
    "FinalLayerNorm": "layers.layer_norm",
    "FlattenChoices": "layers",
    "GoogleAdamW": "optimizers.adamw",
    "GoogleWarmupLinearDecay": "optimizers",
    "GatedFeedForward": "layers",
    "HeadTail": "preprocessing",
    "HeadTransform": "layers",
    "LambdaRank": "losses",
    "ListNet": "losses",
    "LocalAttention": "layers",
    "MaskedAccuracy": "metrics",
    "MaskedLMGenerator": "preprocessing",
    "MaskedLMHead": "layers",
    "MatthewsCorrelation": "metrics",
    "MultipleChoiceHead": "layers",
    "NextSentenceHead": "layers",
    "OfClasses": "tasks.objectives.metrics",
    "OfSigmoid": "tasks.objectives.metrics",
    "PearsonCorrelation": "metrics",
    "PairAUC": "tasks.objectives.metrics",
    "Perplexity": "metrics",
    "Pooler": "layers",
    "RankNet": "losses",
    "RelativePositionBias": "layers",
    "RotaryPositions": "layers",
    "ScalarMix": "layers",
    "SelfAttention": "layers",
    "SequencePooling": "layers",
    "SinusoidalPositions": "layers",
    "SpanHead": "layers",
    "SentencePieceTokenizer": "preprocessing",
    "SpanPreprocessor": "preprocessing",
    "SpearmanCorrelation": "metrics",
    "StaticBackbone": "tasks",
    "TokenClassificationHead": "layers",
    "TransformerEncoderBlock": "layers",
    "Warmup": "optimizers",
    "WarmupLinearDecay": "optimizers",
    "WarmupStableDecay": "optimizers",
    "WindowPooling": "layers",
    "Windows": "preprocessing",
    "AnglE": "losses",
    "CoSENT": "losses",
    "DistillKLDiv": "losses",
    "MarginMSE": "losses",
    "Matryoshka": "losses",
    "MultipleNegativesRanking": "losses",
    "Triplet": "losses",
}

try:
    __version__ = version("keras-bert-layers")
except PackageNotFoundError:  # used from a checkout that is not installed
    __version__ = "0+unknown"

_homes = make_lazy(__name__, __file__)
_PUBLIC_CLASSES = {name: home for name, home in _homes.items() if name.startswith("Bert") and name != "BertConfig"}
register_stand_ins({**_PUBLIC_CLASSES, **{name: f"{__name__}.{home}" for name, home in _REGISTERED.items()}})
