"""The parts of a batch that several processes make: together the whole batch, and no more work than they are."""

import dataclasses
import functools

import keras
import numpy as np
import pytest

import keras_bert_layers as kbl
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import HeadTail, Masking, NextSentence, PackedTexts, Windows
from keras_bert_layers.tag_scheme import tag_scheme
from keras_bert_layers.tasks.feeding import global_batches
from keras_bert_layers.tasks.feeding.epochs import Epochs, RowOrder
from keras_bert_layers.tasks.feeding.global_batches import PADDING_ROWS, part_of_process, parts_are_cut
from keras_bert_layers.tasks.inputs import (
    ChoiceInputs,
    ComparedInputs,
    DocumentInputs,
    MaskedInputs,
    QueryInputs,
    TextInputs,
    WordInputs,
)
from keras_bert_layers.tasks.labels import make_labels

NUM_ROWS, BATCH_SIZE = 21, 8  # the last batch has 5 rows, which no number of devices here divides
WORDS = "a good bad film night".split()
TAGS = ["O", "B-X", "I-X"]
ROW_RULES = {"shards": NextSentence(), "packed rows": PackedTexts()}


@dataclasses.dataclass
class Processes:
    """What `global_batches` asks of a `keras.distribution`, in one of several processes."""

    num_processes: int
    num_model_replicas: int
    data_shard_id: int


@pytest.fixture
def process(monkeypatch):
    """A function that makes this the process of that index, of so many with so many devices together."""

    def process(*numbers):
        monkeypatch.setattr(global_batches, "distribution", lambda: Processes(*numbers))

    return process


def texts(seed):
    draw = np.random.default_rng(seed)
    return [" ".join(draw.choice(WORDS, draw.integers(1, 9))) for _ in range(NUM_ROWS)]


def numbers(seed, *width):
    return np.random.default_rng(seed).uniform(-1, 1, (NUM_ROWS, *width)).astype(np.float32)


@pytest.fixture(scope="module")
def corpus(tokenizer, tmp_path_factory):
    """Makes a corpus by a rule, of documents of four sentences."""
    folder = tmp_path_factory.mktemp("corpus")
    path = folder / "documents.txt"
    path.write_text("\n".join(text + "\n" * (row % 4 == 3) for row, text in enumerate(texts(2))))
    files = kbl.data.DocumentFiles(path, separated_by="blank_lines")

    def corpus(rule):
        return kbl.data.TextCorpus(files, tokenizer, rule=rule, max_length=13)

    return corpus


@pytest.fixture(scope="module")
def shards(corpus, tmp_path_factory):
    """Shards of two duplicates by a rule."""

    @functools.cache
    def shards(rule):
        return kbl.data.write_shards(corpus(rule), tmp_path_factory.mktemp("shards"), num_duplicates=2)

    return shards


@pytest.fixture
def data(tokenizer, corpus, shards):
    """A function from the name of a kind of data to its inputs, and to what `batches` takes."""

    def data(kind, padding="max_length"):
        preprocessor = kbl.BertPreprocessor(tokenizer, max_length=8, padding=padding)
        classes = make_labels("single_label_classification", 2, class_names=["few", "many"], threshold=None)
        labels = ["many" if len(text) > 20 else "few" for text in texts(0)]
        compared, masking = ComparedInputs("Owner", preprocessor, 3), Masking(seed=5)
        masked, documents = MaskedInputs("Owner", preprocessor, masking), DocumentInputs("Owner", preprocessor, masking)
        in_buckets = MaskedInputs("Owner", kbl.BertPreprocessor(tokenizer, max_length=8), masking)
        queries = QueryInputs("Owner", preprocessor, None, {"query": "a "})
        if kind in ("texts", "head and tail", "windows", "dataset", "weights without labels"):
            inputs = TextInputs("Owner", preprocessor, classes)
            inputs.long_texts = {"head and tail": HeadTail(), "windows": Windows(stride=2)}.get(kind)
            if kind == "dataset":
                return inputs, (tf.data.Dataset.from_tensor_slices((texts(0), labels)).batch(BATCH_SIZE),)
            return inputs, (texts(0), None if kind == "weights without labels" else labels, numbers(1))
        if kind in ("corpus", "shards", "packed rows"):
            rows = corpus(NextSentence()) if kind == "corpus" else shards(ROW_RULES[kind])
            return masked if kind == "packed rows" else documents, (rows,)
        pairs = texts(0), texts(1)
        return {
            "pairs of texts": (TextInputs("Owner", preprocessor, classes, pairs=True), (pairs, labels)),
            "vectors": (compared, (texts(0), numbers(1, 3))),
            "similarities": (compared, (pairs, numbers(1), numbers(2))),
            "pairs": (compared, (pairs,)),
            "triplets": (compared, ((*pairs, texts(2)),)),
            "queries": (queries, (pairs, None, numbers(1))),
            "queries with negatives": (queries, ((*pairs, texts(2)),)),
            "choices": (
                ChoiceInputs("Owner", preprocessor, fill_value=-1e9),
                ((texts(0), [texts(row)[: 1 + row % 3] for row in range(NUM_ROWS)]), np.zeros(NUM_ROWS, int)),
            ),
            "tags": (
                WordInputs("Owner", preprocessor, TAGS, scheme=tag_scheme("Owner", TAGS, None), stride=2),
                ([text.split()[:6] for text in texts(0)], [["O"] * len(text.split()[:6]) for text in texts(0)]),
            ),
            "masked texts": (masked, (texts(0), None, numbers(1))),
            "masked texts of any width": (in_buckets, (texts(0),)),
            "masked pairs": (documents, (pairs, [0, 1, 1] * 7)),
            "documents": (documents, ([texts(row)[:5] for row in range(7)],)),
        }[kind]

    return data


EARLY = [
    *("texts", "head and tail", "dataset", "weights without labels", "pairs of texts", "vectors", "similarities"),
    *("pairs", "triplets", "queries", "masked texts", "masked pairs", "documents", "corpus", "shards", "packed rows"),
    "masked texts of any width",
]
LATE = ["windows", "queries with negatives", "choices", "tags"]


def made(inputs, data, order):
    """The dataset of an epoch, or of an evaluation if `order` is None, and whether it is cut before there are ids."""
    batch_size = None if isinstance(data[0], tf.data.Dataset) else BATCH_SIZE
    epochs = None if order is None else Epochs(order, lambda: (7, 1, 1))
    with parts_are_cut():
        dataset = inputs.batches(*data, batch_size=batch_size, epochs=epochs)
    return dataset, PADDING_ROWS in dataset.element_spec[0]


def read(dataset):
    return [keras.tree.map_structure(as_array, batch) for batch in dataset]


def as_array(leaf):
    return None if leaf is None else leaf.numpy()


CASES = [
    *((kind, RowOrder.SHUFFLED, 2, 4) for kind in [*EARLY, *LATE] if kind != "corpus"),
    ("corpus", None, 2, 4),
    *((kind, None, 4, 4) for kind in ("texts", "tags", "masked texts", "shards")),
    ("pairs of texts", RowOrder.BY_LENGTH, 1, 2),
]


@pytest.mark.parametrize(("kind", "order", "num_processes", "num_devices"), CASES)
def test_parts_are_the_whole_batch(kind, order, num_processes, num_devices, data, process):
    """One in the midst and the last: their parts depend on where those before end, and on the padding."""
    inputs, given = data(kind)
    dataset, is_early = made(inputs, given, order)
    assert not is_early
    expected = read(dataset)
    index = tf.Variable(0)  # one graph for all processes, each of which would trace its own
    process(num_processes, num_devices, index)
    dataset, is_early = made(inputs, given, order)
    assert is_early == (kind in EARLY)
    dataset = part_of_process(dataset)
    for number in sorted({(num_processes - 1) // 2, num_processes - 1}):
        index.assign(number)
        for whole, part in zip(expected, read(dataset), strict=True):
            num_rows = min(map(len, arrays(whole)))
            num_padding = -num_rows % num_devices
            assert part[0].pop(PADDING_ROWS).shape == (num_devices // num_processes, num_padding)
            for leaf, found in zip(arrays(whole), arrays(part), strict=True):
                size = len(leaf) // num_rows * (num_rows + num_padding)
                of_processes = np.split(leaf[np.arange(size) % len(leaf)], num_processes)
                np.testing.assert_array_equal(found, of_processes[number], strict=True)


def arrays(batch):
    return [leaf for leaf in keras.tree.flatten(batch) if leaf is not None]


@pytest.mark.parametrize("padding", ["longest", "bucket"])
def test_whole_batches_decide_their_width(padding, data, process):
    inputs, given = data("texts", padding)
    process(2, 2, 1)
    assert not made(inputs, given, None)[1]


@pytest.mark.parametrize("kind", ["texts", "pairs", "queries", "masked texts", "shards"])
def test_a_process_encodes_its_rows_alone(kind, data, process, monkeypatch):
    found = []

    def counted(method):
        def count(self, strings):
            result = method(self, strings)
            tf.py_function(lambda size: found.append(int(size)), [tf.size(strings)], [])
            return result

        return count

    owner, name = (kbl.data.TokenShards, "rows_of_records") if kind == "shards" else (kbl.BertTokenizer, "tokenize")
    monkeypatch.setattr(owner, name, counted(getattr(owner, name)))
    num_rows, index = [], tf.Variable(0)
    for num_processes, indices in ((1, [0]), (4, [0, 3])):
        process(num_processes, num_processes, index)
        dataset, _ = made(*data(kind), None)
        for number in indices:
            index.assign(number)
            found.clear()  # what the search for long texts has read, too
            padding = [batch[0][PADDING_ROWS].shape[1] for batch in dataset]
            num_rows.append((sum(found), sum(padding)))
    (of_one, _), (of_first, num_padding), of_last = num_rows
    texts_per_row = {"pairs": 2, "queries": 2}.get(kind, 1)
    assert of_first == of_last[0] == (of_one + texts_per_row * num_padding) / 4
