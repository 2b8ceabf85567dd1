"""Loading the heads of HuggingFace directories; tensor names are written out here, apart from the package's table."""

import json
import re
import warnings

import keras
import numpy as np
import pytest

from keras_bert_layers import load_task, save_huggingface
from keras_bert_layers.checkpoints import CheckpointError, load_report
from keras_bert_layers.checkpoints.task_table import TASKS

HIDDEN, VOCABULARY = 15, 23
PREDICTIONS = {
    "cls.predictions.transform.dense.weight": (HIDDEN, HIDDEN),
    "cls.predictions.transform.dense.bias": (HIDDEN,),
    "cls.predictions.transform.LayerNorm.weight": (HIDDEN,),
    "cls.predictions.transform.LayerNorm.bias": (HIDDEN,),
    "cls.predictions.bias": (VOCABULARY,),
}
# Two traces of the same float32 sums.
TOLERANCE = 1e-5
NEXT_SENTENCE = {"cls.seq_relationship.weight": (2, HIDDEN), "cls.seq_relationship.bias": (2,)}


def classifier(num_labels):
    return {"classifier.weight": (num_labels, HIDDEN), "classifier.bias": (num_labels,)}


def labels(*names):
    return {"id2label": {str(number): name for number, name in enumerate(names)}}


TAGS = ["O", "B-place", "I-place"]
# Architecture -> config, head tensors, whether there is a pooler, our task, its settings, our head's weights.
ARCHITECTURES = {
    "BertForMaskedLM": ({}, PREDICTIONS, False, "BertMaskedLM", {}),
    "BertForMultipleChoice": ({"classifier_dropout": 0.3}, classifier(1), True, "BertMultipleChoice", {"dropout": 0.3}),
    "BertForNextSentencePrediction": (
        {},
        NEXT_SENTENCE,
        True,
        "BertClassifier",
        {"class_names": ["is_next", "not_next"], "pairs": True, "dropout": 0.0},
    ),
    "BertForPreTraining": ({}, {**PREDICTIONS, **NEXT_SENTENCE}, True, "BertPretrainer", {}),
    "BertForQuestionAnswering": (
        {},
        {"qa_outputs.weight": (2, HIDDEN), "qa_outputs.bias": (2,)},
        False,
        "BertQuestionAnswerer",
        {},
    ),
    "BertForTokenClassification": (
        labels(*TAGS),
        classifier(3),
        False,
        "BertTokenClassifier",
        {"tag_names": TAGS, "dropout": 0.1},
    ),
    "BertForSequenceClassification": (
        {"problem_type": "multi_label_classification", **labels("a", "b", "c", "d")},
        classifier(4),
        True,
        "BertClassifier",
        {"class_names": ["a", "b", "c", "d"], "problem_type": "multi_label_classification"},
    ),
}


def write(huggingface, directory, architecture, config, head, pooler):
    values = {**huggingface.CONFIG, "architectures": architecture and [architecture], **config}
    tensors = huggingface.random_tensors(values, prefix="bert.", pooler=pooler)
    rng = np.random.default_rng(3)
    tensors |= {name: rng.normal(0, 0.3, shape).astype("float32") for name, shape in head.items()}
    huggingface.write(directory, config=values, tensors=tensors)
    return tensors


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_head_with_its_weights(huggingface, tmp_path, architecture):
    config, head, pooler, name, settings = ARCHITECTURES[architecture]
    tensors = write(huggingface, tmp_path, architecture, config, head, pooler)
    task = load_task(tmp_path)
    assert type(task).__name__ == name
    assert {setting: getattr(task, setting) for setting in settings} == settings
    report = load_report(task)
    assert set(report.loaded) == set(tensors)
    assert set(report.fresh) == (set() if pooler else {"pooler/dense/kernel", "pooler/dense/bias"})
    known = {id(weight) for weight in task.backbone.weights}
    ours = [np.asarray(weight.value) for weight in task.weights if id(weight) not in known]
    theirs = [tensors[tensor].T if len(shape) == 2 else tensors[tensor] for tensor, shape in head.items()]
    assert len(ours) == len(theirs)
    for array in theirs:
        assert sum(array.shape == other.shape and np.array_equal(array, other) for other in ours) == 1


def test_fresh_pooler_is_drawn(huggingface, tmp_path):
    """The encoder is made of zeros while it is read; what the file lacks must not stay so."""
    config, head, pooler, _, _ = ARCHITECTURES["BertForQuestionAnswering"]
    write(huggingface, tmp_path, "BertForQuestionAnswering", config, head, pooler)
    weights = {weight.path: np.asarray(weight.value) for weight in load_task(tmp_path).backbone.weights}
    assert 0.005 < weights["pooler/dense/kernel"].std() < 0.05
    assert not weights["pooler/dense/bias"].any()


def test_one_label_is_a_regression_or_a_cross_encoder(huggingface, tmp_path):
    write(huggingface, tmp_path, "BertForSequenceClassification", labels("score"), classifier(1), True)
    regression = load_task(tmp_path)
    assert (type(regression).__name__, regression.problem_type) == ("BertClassifier", "regression")
    cross_encoder = load_task(tmp_path, "cross_encoder")
    assert (type(cross_encoder).__name__, load_report(cross_encoder).fresh) == ("BertCrossEncoder", ())
    texts = (["a good film", "bad"], ["good night", "a film"])
    scores = keras.ops.convert_to_numpy(regression(regression.preprocessor(texts)))
    np.testing.assert_allclose(cross_encoder.predict(texts, verbose=0), scores, atol=TOLERANCE)
    mark = {"sentence_transformers": {"version": "5.0.0", "activation_fn": "torch.nn.modules.linear.Identity"}}
    write(huggingface, tmp_path, "BertForSequenceClassification", {**labels("score"), **mark}, classifier(1), True)
    assert type(load_task(tmp_path)).__name__ == "BertCrossEncoder"


def test_cross_encoder_of_newer_releases(huggingface, tmp_path):
    """sentence-transformers writes modules for a CrossEncoder too, since 5.4: one, which is the model with its head."""
    write(huggingface, tmp_path, "BertForSequenceClassification", labels("score"), classifier(1), True)
    huggingface.add_modules(tmp_path, kinds=("Transformer",))
    huggingface.write_json(tmp_path / "config_sentence_transformers.json", {"model_type": "CrossEncoder"})
    task = load_task(tmp_path)
    assert (type(task).__name__, load_report(task).fresh) == ("BertCrossEncoder", ())


def test_pretrained_heads_one_by_one(huggingface, tmp_path):
    config, head, pooler, _, _ = ARCHITECTURES["BertForPreTraining"]
    write(huggingface, tmp_path, "BertForPreTraining", config, head, pooler)
    report = load_report(load_task(tmp_path, "masked_lm"))
    assert report.fresh == ()
    assert report.ignored == dict.fromkeys(NEXT_SENTENCE, "a pretraining head")


def test_another_task_gets_a_fresh_head(huggingface, tmp_path):
    config, head, pooler, _, _ = ARCHITECTURES["BertForPreTraining"]
    write(huggingface, tmp_path, "BertForPreTraining", config, head, pooler)
    report = load_report(load_task(tmp_path, "question_answerer"))
    assert report.fresh == ("span_head/dense/kernel", "span_head/dense/bias")
    assert set(report.ignored) == set(head)


# Stored class and its number of outputs -> the outcome of each task asked, in the order of TASKS: classifier,
# cross_encoder, dual_encoder, masked_lm, multiple_choice, pretrainer, question_answerer, sentence_encoder,
# sparse_encoder, token_classifier. S: the stored head; N: a new one, with a warning that names the stored one; n: a new
# one, of an encoder or of a pretrained model; E: no head; x: refused.
STORED_AND_ASKED = {
    ("BertForSequenceClassification", 1): "S S E N N N N E N N",
    ("BertForSequenceClassification", 2): "S x E N N N N E N N",
    ("BertForSequenceClassification", 3): "S x E N N N N E N N",
    ("BertForTokenClassification", 3): "N N E N N N N E N S",
    ("BertForMultipleChoice", 1): "N N E N S N N E N N",
    ("BertForQuestionAnswering", 2): "N N E N N N S E N N",
    ("BertForNextSentencePrediction", 2): "S N E N N N N E N N",
    ("BertForMaskedLM", 0): "n n E S n x n E S n",
    ("BertForPreTraining", 0): "n n E S n S n E S n",
    ("BertModel", 0): "n n E n n n n E n n",
    (None, 1): "S S E N S N N E N N",
    (None, 3): "S x E N N N N E N S",
}


REFUSED = re.compile(r"the weights hold (the|a) head .*To train a new head instead: `Bert")


def outcome(directory, task, options):
    """How a task is loaded; a warning is part of it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = load_task(directory, task, preprocessor=None, **options)
        except CheckpointError as error:
            return "x" if REFUSED.search(str(error)) else str(error)
    texts = [str(warning.message) for warning in caught]
    assert all("the weights hold the trained head of a Bert" in text for text in texts)
    if load_report(model).newly_initialized:
        return "N" if texts else "n"
    assert not texts
    return "S" if len(model.weights) > len(model.backbone.weights) else "E"


def test_every_task_asked_of_every_stored_head(huggingface, tmp_path):
    """A stored head is read, or what happens to it is said."""
    for (architecture, outputs), expected in STORED_AND_ASKED.items():
        if architecture in (None, "BertForSequenceClassification"):
            stored = classifier(outputs)
        else:
            stored = ARCHITECTURES[architecture][1] if architecture in ARCHITECTURES else {}
        write(huggingface, tmp_path, architecture, {"num_hidden_layers": 1}, stored, True)
        new = {"classifier": {"num_classes": 2}, "token_classifier": {"tag_names": TAGS}}
        found = [
            outcome(tmp_path, task, {} if wanted == "S" else new.get(task, {}))
            for task, wanted in zip(TASKS, expected.split(), strict=True)
        ]
        assert (architecture, outputs, " ".join(found)) == (architecture, outputs, expected)


def test_options_of_a_regression(huggingface, tmp_path):
    write(huggingface, tmp_path, "BertForSequenceClassification", {}, classifier(1), True)
    with pytest.raises(ValueError, match=r"`num_classes` must be the checkpoint's 1\. Received: num_classes=2"):
        load_task(tmp_path, "classifier", num_classes=2)


@pytest.mark.parametrize("place", ["encoder", "decoder", "both"])
def test_tied_matrix(huggingface, tmp_path, place):
    """transformers 5 writes a tied matrix once, older releases twice."""
    tensors = write(huggingface, tmp_path, "BertForMaskedLM", {}, PREDICTIONS, False)
    matrix, bias = tensors["bert.embeddings.word_embeddings.weight"], tensors["cls.predictions.bias"]
    if place != "encoder":
        tensors |= {"cls.predictions.decoder.weight": matrix.copy(), "cls.predictions.decoder.bias": bias.copy()}
    if place == "decoder":
        del tensors["bert.embeddings.word_embeddings.weight"], tensors["cls.predictions.bias"]
    config = {**huggingface.CONFIG, "architectures": ["BertForMaskedLM"]}
    huggingface.write(tmp_path, config=config, tensors=tensors)
    task = load_task(tmp_path)
    np.testing.assert_array_equal(np.asarray(task.backbone.get_layer("embedding").token_embedding.value), matrix)
    assert len(load_report(task).ignored) == 2 * (place == "both")
    assert task.tie_weights


@pytest.mark.parametrize("architecture", ["BertForMaskedLM", "BertForPreTraining"])
def test_the_bias_of_the_decoder_counts(huggingface, tmp_path, architecture):
    """transformers takes it where a file has another bias beside it."""
    head = {**ARCHITECTURES[architecture][1], "cls.predictions.decoder.bias": (VOCABULARY,)}
    tensors = write(huggingface, tmp_path, architecture, {}, head, True)
    task = load_task(tmp_path, preprocessor=None)
    found = task.get_layer("masked_lm_head").bias
    np.testing.assert_array_equal(np.asarray(found.value), tensors["cls.predictions.decoder.bias"])


def test_settings_without_modules_are_not_read(huggingface, tmp_path):
    """sentence-transformers does not read `config_sentence_transformers.json` without `modules.json`."""
    write(huggingface, tmp_path, "BertForSequenceClassification", labels("score"), classifier(1), True)
    identity = {"model_type": "CrossEncoder", "activation_fn": "torch.nn.modules.linear.Identity"}
    huggingface.write_json(tmp_path / "config_sentence_transformers.json", identity)
    assert type(load_task(tmp_path)).__name__ == "BertClassifier"
    assert load_task(tmp_path, "cross_encoder").activation == "sigmoid"


def test_options_that_contradict_the_head(huggingface, tmp_path):
    config, head, pooler, _, _ = ARCHITECTURES["BertForTokenClassification"]
    write(huggingface, tmp_path, "BertForTokenClassification", config, head, pooler)
    assert load_task(tmp_path, tag_names=["O", "B-x", "B-y"]).tag_names == ["O", "B-x", "B-y"]
    with pytest.raises(ValueError, match=r"`load_task`: `tag_names` must hold 3 names.*For a new head: `BertTokenC"):
        load_task(tmp_path, tag_names=["O", "B-x"])
    with pytest.raises(ValueError, match=r"`load_task`: `crf` must be False: the checkpoint's head has none"):
        load_task(tmp_path, crf=True)


@pytest.mark.parametrize(
    ("names", "scheme"),
    [
        (["O", "I-x", "B-x"], "bio"),
        (["O", "I-x", "B-y", "I-y"], "iob1"),
        (["o", "x_B", "x_I", "x_E", "x_S", "[PAD]"], "bioes"),
        (["X", "Y"], "labels"),
        (["LABEL_0", "LABEL_1", "LABEL_2"], "labels"),
    ],
)
def test_tags_of_any_scheme(huggingface, tmp_path, names, scheme):
    """The names are those of the checkpoint, and are written back so."""
    write(
        huggingface,
        tmp_path / "theirs",
        "BertForTokenClassification",
        labels(*names),
        classifier(len(names)),
        False,
    )
    task = load_task(tmp_path / "theirs")
    assert (task.tag_names, task.scheme) == (names, scheme)
    assert f"note: the scheme '{scheme}' of the tags, by their names" in str(load_report(task))
    save_huggingface(task, tmp_path / "ours")
    assert json.loads((tmp_path / "ours" / "config.json").read_text())["id2label"] == {
        str(index): name for index, name in enumerate(names)
    }


def test_scheme_and_aggregation_are_options(huggingface, tmp_path):
    write(huggingface, tmp_path, "BertForTokenClassification", labels("X", "Y"), classifier(2), False)
    task = load_task(tmp_path, scheme="io", aggregation="average")
    assert (task.scheme, task.aggregation) == ("io", "average")
    assert not load_report(task).notes
