"""Every task as an ONNX file: the answers of its SavedModel's signatures, for texts together and one by one."""

import json
import random

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_bert_layers as kbl
from keras_bert_layers.export.signature import with_bound
from keras_bert_layers.preprocessing import SpanPreprocessor

pytestmark = pytest.mark.usefixtures("rules_once")
# Sums in another order, by another library, after two blocks.
TOLERANCE = 1e-5
# Scores are sums of logits of some 10. TensorFlow's oneDNN rounds them otherwise with AVX-512 than with AVX2, where
# they stay within TOLERANCE. Measured: 3.2e-6.
RELATIVE = 5e-6
MAX_LENGTH, MAX_BYTES = 9, 100
TAGS = ["O", "B-x", "I-x", "B-y", "I-y"]
TEXTS = ["a good film", "unhappy night, BAD film!", "", "film [MASK] good " * 9, "Ünhappy\tnight", "é zz bad 日 ée"]
OTHERS = ["night", "a [MASK] good", "film film bad, unhappy films? good" * 9, "", "[MASK] ? [MASK]", "bad日x films"]
QUESTIONS = ["a ?", "film", "good bad film night unhappy", "", "good", "a"]
SIDES = {"query": "good ", "document": "film "}

CASES = {
    "classes of pairs": lambda b, p: kbl.BertClassifier(b, class_names=["bad", "good"], preprocessor=p, pairs=True),
    "ranking": lambda b, p: kbl.BertCrossEncoder(b, preprocessor=p, prompts={"ask": "a film "}),
    "vectors": lambda b, p: kbl.BertSentenceEncoder(b, preprocessor=p, pooling=["lasttoken", "weightedmean"]),
    "search": lambda b, p: kbl.BertDualEncoder(b, preprocessor=p, prompts={"query": "good "}),
    "sparse vectors": lambda b, p: kbl.BertSparseEncoder(b, preprocessor=p, prompts={"query": "good "}),
    "sums": lambda b, p: kbl.BertSparseEncoder(
        b, "sum", activation="log1p_relu", max_active_dims=3, query_weights="frozen", preprocessor=p
    ),
    **{
        f"token vectors, {expansion}": lambda b, p, expansion=expansion: kbl.BertMultiVectorEncoder(
            b, 5, query_length=12, query_expansion=expansion, skiplist=["bad", "."], preprocessor=p, prompts=SIDES
        )
        for expansion in (None, "unattended", "attended")
    },
    "choices": lambda b, p: kbl.BertMultipleChoice(b, preprocessor=p),
    "masks": lambda b, p: kbl.BertMaskedLM(b, p, top_k=3),
    "pretraining": lambda b, p: kbl.BertPretrainer(b, p, top_k=2),
    "answers": lambda b, p: kbl.BertQuestionAnswerer(
        b, SpanPreprocessor(p.tokenizer, MAX_LENGTH, stride=2), n_best=5, max_answer_length=4, no_answer_threshold=0.1
    ),
    "tags by a field": lambda b, p: kbl.BertTokenClassifier(b, TAGS, preprocessor=p, crf=True),
    **{
        f"tags, {name}": lambda b, p, name=name: kbl.BertTokenClassifier(b, TAGS, preprocessor=p, aggregation=name)
        for name in ("first", "average", "max", "simple")
    },
}


def made(case, backbone, preprocessor):
    """A task with weights so large that answers differ."""
    task, generator = CASES[case](backbone, preprocessor), np.random.default_rng(3)
    for weight in task.weights:
        if any(part in weight.path for part in ("head/", "conditional")) and "gamma" not in weight.path:
            values = generator.normal(size=weight.shape) * 0.7
            weight.assign(np.abs(values) if weight.constraint else values)
    return task


def columns(task, texts, others, questions):
    """The texts as the inputs of a task."""
    given = {"text": texts, "text_pair": others, "prompt": texts, "question": questions}
    given["context"] = [f"{text} {other}" for text, other in zip(others, texts, strict=True)]
    given["choices"] = [[text, "", other] for text, other in zip(others, texts, strict=True)]
    return {name: np.array(given[name], object) for name in task.text_inputs()}


def tied(scores):
    """Which rows have equal scores at the first place, and at any. Spans of unknown words in equal windows are such."""
    scores = np.sort(scores)
    is_tied = (np.diff(scores) < TOLERANCE) & (scores[:, 1:] > 0)
    return is_tied[:, -1], is_tied.any(axis=1)


def expectations(task, functions, batch):
    """Of each function, its answers and the rows where places may change, as their scores are equal."""
    tensors = [tf.constant(column) for column in batch.values()]

    def answers(name):
        return {key: np.asarray(value) for key, value in functions[name](*tensors).items()}

    if "n_best" not in functions:
        for name in functions:
            expected = answers(name)
            ties = tied(expected["probabilities"])[1] if "choice" in expected else np.zeros(len(tensors[0]), bool)
            yield name, expected, ties
        return
    task.n_best += 1  # the last place may be tied with the one after it
    first, ties = tied(answers("n_best")["score"])
    task.n_best -= 1
    yield "n_best", answers("n_best"), ties
    yield "serving_default", answers("serving_default"), first


def check(found, expected, ties):
    assert set(found) - {"num_tokens"} == set(expected)
    for name, wanted in expected.items():
        assert found[name].shape == wanted.shape, name
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(found[name], wanted, atol=TOLERANCE, rtol=RELATIVE, err_msg=name)
        else:
            as_given = np.vectorize(bytes.decode, otypes=[object]) if wanted.dtype == object else np.asarray
            assert found[name][~ties].tolist() == as_given(wanted[~ties]).tolist(), name


@pytest.fixture
def compare(ask, tmp_path):
    """Compares the answers of all ONNX files of a task with those of its signatures, for some batches.

    Returns:
        How many rows have equal scores, so that what belongs to these is not compared.
    """
    pytest.importorskip("onnx")

    def compare(task, batches):
        signatures = {signature.name: with_bound(signature, MAX_BYTES) for signature in task.signatures()}
        paths, functions = {}, {}
        for name in task.onnx_functions():
            paths[name] = task.export(tmp_path / f"{name}.onnx", format="onnx", signatures=[name], max_bytes=MAX_BYTES)
            specs = [tf.TensorSpec(*spec) for spec in signatures[name].inputs.values()]
            functions[name] = tf.function(signatures[name].function, input_signature=specs)
        num_tied = 0
        for batch in batches:
            found = {name: ask(path, batch) for name, path in paths.items()}
            for name, expected, ties in expectations(task, functions, batch):
                check(found[name], expected, ties)
                num_tied += int(ties.sum())
        return num_tied

    return compare


@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("traces_nothing")
def test_answers_are_those_of_the_signatures(case, new_backbone, preprocessor, compare):
    task = made(case, new_backbone(hidden_dim=12), kbl.BertPreprocessor(preprocessor.tokenizer, MAX_LENGTH))
    together = columns(task, TEXTS, OTHERS, QUESTIONS)
    # Alone, a row has other widths: a short one, an empty one and a long one.
    rows = [{name: values[row : row + 1] for name, values in together.items()} for row in (0, 2, 3)]
    # Eagerly, TensorFlow computes no rows at all, which a long question alone leaves.
    rows = [row for row in rows if row.get("question", [""])[0] != QUESTIONS[2]]
    compare(task, [together, *rows])


@pytest.mark.parametrize("case", ["classes of pairs", "masks", "answers"])
@pytest.mark.usefixtures("traces_nothing")
def test_two_separators_between_texts(case, new_backbone, vocabulary, compare):
    """MPNet: its template, a bias of distances beside trained positions, and no segments."""
    config = new_backbone(hidden_dim=12, num_segments=0, position_offset=2).config
    bias = kbl.layers.RelativePositionBias(num_buckets=8, max_distance=5, keeps_position_embedding=True)
    backbone = kbl.BertBackbone(config, parts=kbl.layers.EncoderParts(positions=bias))
    tokens = [kbl.preprocessing.AddedToken("[MASK]", lstrip=True, special=True)]
    tokenizer = kbl.BertTokenizer(vocabulary, reference="huggingface", added_tokens=tokens, num_pair_separators=2)
    task = made(case, backbone, kbl.BertPreprocessor(tokenizer, MAX_LENGTH))
    others = ["night"] * len(TEXTS) if case == "masks" else OTHERS
    compare(task, [columns(task, TEXTS, others, QUESTIONS)])


@pytest.mark.usefixtures("traces_nothing")
def test_a_directory_of_mpnet_as_it_is_published(new_backbone, compare, tmp_path):
    """all-mpnet-base-v2: `<unk>` is an added token that is looked for in the normalized text, beside `[UNK]`."""
    words = ["a", "good", "film", "night", "bad", "un", "##happy", "unk", "<", ">"]
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *words, "[UNK]", "<mask>"]
    config = new_backbone(hidden_dim=12, num_segments=0, position_offset=2, vocabulary_size=len(tokens)).config
    bias = kbl.layers.RelativePositionBias(keeps_position_embedding=True)
    roles = {"start": "<s>", "pad": "<pad>", "separator": "</s>", "unknown": "[UNK]", "mask": "<mask>"}
    options = {"reference": "huggingface", "num_pair_separators": 2, "special_tokens": roles}
    preprocessor = kbl.BertPreprocessor(kbl.BertTokenizer(tokens, **options), MAX_LENGTH)
    backbone = kbl.BertBackbone(config, parts=kbl.layers.EncoderParts(positions=bias))
    task = kbl.BertSentenceEncoder(backbone, preprocessor=preprocessor)
    kbl.checkpoints.save_huggingface(task, tmp_path / "mpnet")
    path = tmp_path / "mpnet" / "tokenizer.json"
    values = json.loads(path.read_text("utf-8"))
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "special": True}
    values["added_tokens"].insert(3, {"id": 3, "content": "<unk>", **flags})
    path.write_text(json.dumps(values), "utf-8")
    loaded = kbl.load_task(tmp_path / "mpnet")
    texts = ["a <unk> film", "a<UNK>bad<Unk>", "< unk> night [UNK]<mask>", "good films"]
    assert loaded.preprocessor.tokenizer.tokenize("a<UNK>").numpy().tolist() == [4, 3]
    compare(loaded, [columns(loaded, texts, texts, texts)])


@pytest.mark.parametrize("side", ["left", "only_first", "only_second"])
@pytest.mark.usefixtures("traces_nothing")
def test_other_truncations(side, new_backbone, tokenizer, compare):
    options = {"truncation_side": "left"} if side == "left" else {"truncation": side}
    preprocessor = kbl.BertPreprocessor(tokenizer, MAX_LENGTH, **options)
    task = made("pretraining", new_backbone(num_layers=1), preprocessor)
    short = ["a", "film", "", "good [MASK]", "un", "bad"]
    texts, others = (short, OTHERS) if side == "only_second" else (OTHERS, short)
    compare(task, [columns(task, texts, others, QUESTIONS)])
    if side == "only_first":
        with pytest.raises(RuntimeError, match="the other text must have at most 6 tokens"):
            compare(task, [columns(task, short, OTHERS, QUESTIONS)])


PIECES = ["", " ", "\t\n a\r\n", "a" * 101, "é" * 101, "中中", "[SEP]", "x[MASK]y", "[ MASK ]", "[SE\x01P]", "##ab"]
PIECES += ["ΟΔΟΣ ΣΑΣ Σ.", "İstanbul", "ﬁ ß ǅ", "한국어", "\u0301a\u0301", "a\u200bb", "\ufffd", "😀", "\ue000\uf8ff"]
RANGES = [range(1, 0x250), range(0x250, 0x3000), range(0xAC00, 0xD7FF), range(0x4E00, 0x5000), range(0x1F300, 0x1F600)]


@pytest.mark.slow
@pytest.mark.parametrize("reference", ["google", "huggingface"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("traces_nothing")
def test_two_thousand_hostile_texts(case, reference, new_backbone, vocabulary, compare):
    """A thousand for each of the two references; five eager batches take less time than a trace."""
    generator = random.Random(5)

    def piece():
        if (kind := generator.random()) < 0.5:
            return generator.choice(vocabulary[5:])
        if kind < 0.8:
            return generator.choice(PIECES)
        return "".join(chr(generator.choice(generator.choice(RANGES))) for _ in range(generator.randrange(1, 6)))

    def texts(*sizes):
        return [
            generator.choice([" ", " ", ""]).join(piece() for _ in range(generator.choice(sizes))) for _ in range(200)
        ]

    tokenizer = kbl.BertTokenizer(vocabulary, reference=reference)
    keras.utils.set_random_seed(3)
    task = made(case, new_backbone(hidden_dim=12), kbl.BertPreprocessor(tokenizer, MAX_LENGTH))
    sizes = (0, 1, 2, 3, 6, 12, 25, 40)
    batches = [columns(task, texts(*sizes), texts(*sizes), texts(0, 1, 2)) for _ in range(5)]
    assert compare(task, batches) < 400  # words that are unknown, in equal windows and choices
