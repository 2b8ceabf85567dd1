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
    "AnglE": "losses",
    "BertAdamW": "optimizers.adamw",
    "BertEmbedding": "layers",
    "BertLamb": "optimizers.lamb",
    "BytePairTokenizer": "preprocessing",
    "CalibrationError": "metrics",
    "ClassificationHead": "layers",
    "CombinedTasks": "tasks",
    "ConditionalRandomField": "layers",
    "CoSENT": "losses",
    "DisentangledSelfAttention": "layers",
    "DistillKLDiv": "losses",
    "EncoderParts": "layers",
    "EntityF1": "metrics",
    "F1Score": "metrics",
    "FeedForward": "layers",
    "FinalLayerNorm": "layers.layer_norm",
    "FlattenChoices": "layers",
    "GatedFeedForward": "layers",
    "GoogleAdamW": "optimizers.adamw",
    "GoogleWarmupLinearDecay": "optimizers",
    "HeadTail": "preprocessing",
    "HeadTransform": "layers",
    "LambdaRank": "losses",
    "ListNet": "losses",
    "LocalAttention": "layers",
    "MarginMSE": "losses",
    "MaskedAccuracy": "metrics",
    "MaskedLMGenerator": "preprocessing",
    "MaskedLMHead": "layers",
    "Matryoshka": "losses",
    "MatthewsCorrelation": "metrics",
    "MultipleChoiceHead": "layers",
    "MultipleNegativesRanking": "losses",
    "NextSentenceHead": "layers",
    "OfClasses": "tasks.objectives.metrics",
    "OfSigmoid": "tasks.objectives.metrics",
    "PairAUC": "tasks.objectives.metrics",
    "PearsonCorrelation": "metrics",
    "Perplexity": "metrics",
    "Pooler": "layers",
    "RankNet": "losses",
    "RelativePositionBias": "layers",
    "RelativeVectors": "layers",
    "RotaryPositions": "layers",
    "ScalarMix": "layers",
    "SelfAttention": "layers",
    "SentencePieceTokenizer": "preprocessing",
    "SequencePooling": "layers",
    "SinusoidalPositions": "layers",
    "SpanHead": "layers",
    "SparseHead": "layers",
    "SpanPreprocessor": "preprocessing",
    "SpearmanCorrelation": "metrics",
    "StaticBackbone": "tasks",
    "TokenClassificationHead": "layers",
    "TokenConvolution": "layers",
    "TokenWeights": "layers",
    "TransformerEncoderBlock": "layers",
    "Triplet": "losses",
    "Warmup": "optimizers",
    "WarmupLinearDecay": "optimizers",
    "WarmupStableDecay": "optimizers",
    "WindowPooling": "layers",
    "Windows": "preprocessing",
}

try:
    __version__ = version("keras-bert-layers")
except PackageNotFoundError:  # used from a checkout that is not installed
    __version__ = "0+unknown"

_homes = make_lazy(__name__, __file__)
_PUBLIC_CLASSES = {name: home for name, home in _homes.items() if name.startswith("Bert") and name != "BertConfig"}
register_stand_ins({**_PUBLIC_CLASSES, **{name: f"{__name__}.{home}" for name, home in _REGISTERED.items()}})
