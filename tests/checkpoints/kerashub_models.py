"""Small random models of KerasHub's own BERT, and the presets that KerasHub writes of them."""

import h5py
import keras
import keras_hub
import numpy as np

VOCABULARY = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *["a", "good", "bad", "film", "night", "##ness", "##s", "中", "un", "##happy", "##ful"],
]

# Every size is its own, so that a swapped axis does not fit.
SIZES = {
    "vocabulary_size": 23,
    "num_layers": 2,
    "num_heads": 3,
    "hidden_dim": 15,
    "intermediate_dim": 22,
    "dropout": 0.2,
    "max_sequence_length": 17,
    "num_segments": 4,
}
NUM_CLASSES = 6
LENGTH = 13
TEXTS = ["a good film", "bad", "unhappy nights, a bad film!"]


def randomised(model, seed=3):
    """The model with other numbers in every weight: zeros and ones of a fresh one would hide mistakes."""
    rng = np.random.default_rng(seed)
    for weight in model.weights:
        weight.assign(rng.normal(0, 0.3, weight.shape))
    return model


def tokenizer(**options):
    return keras_hub.models.BertTokenizer(VOCABULARY, lowercase=True, **options)


def backbone(**options):
    return randomised(keras_hub.models.BertBackbone(**SIZES, **options))


def classifier(num_classes=NUM_CLASSES, **options):
    preprocessor = keras_hub.models.BertTextClassifierPreprocessor(tokenizer(), sequence_length=LENGTH)
    model = keras_hub.models.BertTextClassifier(backbone(), num_classes, preprocessor, dropout=0.3, **options)
    return randomised(model)


def masked_lm():
    preprocessor = keras_hub.models.BertMaskedLMPreprocessor(tokenizer(), sequence_length=LENGTH)
    return randomised(keras_hub.models.BertMaskedLM(backbone(), preprocessor))


def text_embedder():
    preprocessor = keras_hub.models.BertTextEmbedderPreprocessor(tokenizer(), sequence_length=LENGTH)
    return keras_hub.models.BertTextEmbedder(backbone(), preprocessor, pooling_mode="max", normalize=False)


def save(model, directory):
    """What KerasHub itself writes; gives the directory."""
    model.save_to_preset(str(directory))
    if isinstance(model, keras_hub.models.BertBackbone):
        tokenizer().save_to_preset(str(directory))
    return directory


def load(kind, directory, **options):
    """What KerasHub itself reads: an object of its class `kind`."""
    return getattr(keras_hub.models, kind).from_preset(str(directory), **options)


def weights(model):
    """Array by path of every weight; the states of random generators are not weights."""
    variables = {variable.path: variable for variable in model.variables if "seed_generator" not in variable.path}
    return {path: keras.ops.convert_to_numpy(variable) for path, variable in variables.items()}


def stored(directory):
    """Array by file and place of everything in a preset's files of weights."""
    found = {}
    for path in sorted(directory.glob("*.weights.h5")):
        with h5py.File(path) as file:

            def visit(name, entry, prefix=path.name):
                if isinstance(entry, h5py.Dataset):
                    found[f"{prefix}/{name}"] = entry[()]

            file.visititems(visit)
    return found


def ids(seed=1, rows=3, length=11):
    """Random inputs with padding, segments of every number, and positions to predict."""
    rng = np.random.default_rng(seed)
    lengths = np.array([length, 4, 7][:rows])[:, None]
    return {
        "token_ids": rng.integers(0, SIZES["vocabulary_size"], (rows, length), dtype="int32"),
        "segment_ids": rng.integers(0, SIZES["num_segments"], (rows, length), dtype="int32"),
        "padding_mask": (np.arange(length) < lengths).astype("int32"),
    }


def outputs(model, inputs):
    """What a model gives for ids, as arrays."""
    return keras.tree.map_structure(keras.ops.convert_to_numpy, model(inputs))
