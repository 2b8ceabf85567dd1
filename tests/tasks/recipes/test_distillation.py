"""`distill` beside losses in NumPy, and a student that learns what its teacher answers."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import log_softmax, softmax

from keras_bert_layers import BertClassifier, BertCrossEncoder, BertPreprocessor, BertSentenceEncoder, BertTokenizer
from keras_bert_layers.tasks import distill, reduce_layers
from keras_bert_layers.tasks.recipes.distillation import _check_tasks

TEXTS = ["a man", "the dog sang", "good night", "a good dog", "the man sang", "night", "dog", "man"]
LABELS = ["x", "y", "x", "y", "x", "y", "x", "y"]
# Sums of some hundred float32 products.
FLOAT32 = 1e-5


@pytest.fixture
def make(new_backbone, preprocessor):
    def make(cls=BertClassifier, **options):
        sizes = {"num_layers": options.pop("num_layers", 1), "hidden_dim": options.pop("hidden_dim", 15)}
        backbone = new_backbone(seed=options.pop("seed", 11), **sizes)
        if cls is BertClassifier and "problem_type" not in options:
            options = {"class_names": ["x", "y"]} | options
        return cls(backbone, preprocessor=preprocessor, **options)

    return make


def states(task, ids):
    """The hidden states of a task's encoder, layer by layer."""
    hidden = [task.backbone.get_layer("embedding")(ids["token_ids"], ids["segment_ids"])]
    for index in range(task.backbone.config.num_layers):
        block = task.backbone.get_layer(f"encoder_block_{index}")
        hidden.append(block(hidden[-1], ids["padding_mask"]))
    return [np.asarray(state, "float64") for state in hidden]


def relations(task, ids, block, heads=3):
    """MiniLMv2's: queries, keys and values of a block, each text alone without padding."""
    dense = task.backbone.get_layer(f"encoder_block_{block}").attention.query_key_value
    hidden = states(task, ids)[block]
    found = []
    for row, mask in zip(hidden, np.asarray(ids["padding_mask"]), strict=True):
        merged = row[mask == 1] @ np.asarray(dense.kernel, "float64") + np.asarray(dense.bias, "float64")
        for part in np.split(merged, 3, axis=1):
            found += [log_softmax(p @ p.T / p.shape[1] ** 0.5, axis=1) for p in np.split(part, heads, axis=1)]
    return found


def first_loss(teacher, student, x, y=None, **options):
    """The losses of one step over all texts with a learning rate of 0."""
    history = distill(
        teacher, student, x, y, optimizer=keras.optimizers.SGD(0.0), batch_size=len(TEXTS), verbose=0, **options
    ).history
    return {name: values[0] for name, values in history.items()}


@pytest.mark.usefixtures("traces_nothing")
def test_soft_labels(make):
    teacher, student = make(), make(seed=3)
    theirs, ours = (task.predict(TEXTS, verbose=0).astype("float64") for task in (teacher, student))
    hard = -log_softmax(ours, axis=1)[range(8), [0, 1] * 4].mean()
    for temperature in (1.0, 3.0):
        found = first_loss(teacher, student, TEXTS, LABELS, temperature=temperature, student_loss_weight=0.25)
        logs = [log_softmax(logits / temperature, axis=1) for logits in (theirs, ours)]
        soft = temperature**2 * (np.exp(logs[0]) * (logs[0] - logs[1])).sum(axis=1).mean()
        assert found["distillation_loss"] == pytest.approx(soft, abs=FLOAT32), temperature
        assert found["student_loss"] == pytest.approx(hard, abs=FLOAT32), temperature
        assert found["loss"] == pytest.approx(0.25 * hard + 0.75 * soft, abs=FLOAT32), temperature


@pytest.mark.usefixtures("traces_nothing")
def test_hidden_states_and_relations(make, preprocessor):
    teacher, student = make(num_layers=3), make(num_layers=2, seed=3)
    ids = preprocessor(TEXTS)
    mask = np.asarray(ids["padding_mask"], bool)
    plain = first_loss(teacher, student, TEXTS)["distillation_loss"]
    found = first_loss(teacher, student, TEXTS, hidden_states={0: 0, 1: 2, -1: -1}, feature_weight=2.0)
    theirs, ours = states(teacher, ids), states(student, ids)
    expected = np.mean([np.square(theirs[b] - ours[a])[mask].mean() for a, b in ((0, 0), (1, 2), (2, 3))])
    assert found["distillation_loss"] - plain == pytest.approx(2 * expected, abs=FLOAT32)
    found = first_loss(teacher, student, TEXTS, relations={-1: 1})
    pairs = zip(relations(teacher, ids, 1), relations(student, ids, 1), strict=True)
    rows = np.concatenate([(np.exp(p) * (p - q)).sum(axis=1) for p, q in pairs])
    assert found["distillation_loss"] - plain == pytest.approx(rows.mean(), abs=FLOAT32)
    pairs = zip(relations(teacher, ids, 0), relations(student, ids, 0), strict=True)
    others = np.concatenate([(np.exp(p) * (p - q)).sum(axis=1) for p, q in pairs])
    found = first_loss(teacher, student, TEXTS, relations={-1: 1, 0: 0})
    assert found["distillation_loss"] - plain == pytest.approx((rows.mean() + others.mean()) / 2, abs=FLOAT32)


def test_a_graph_of_everything_has_the_eager_losses(make, eagerly):
    """In the one graph of these tests, lengths are unknown."""
    teacher, student = make(), make(seed=3)
    given = {"hidden_states": {-1: -1}, "relations": {-1: -1}}
    found = first_loss(teacher, student, TEXTS, LABELS, **given)
    with eagerly():
        assert found == pytest.approx(first_loss(teacher, student, TEXTS, LABELS, **given), abs=FLOAT32)


@pytest.mark.usefixtures("traces_nothing")
def test_relations_of_another_width(make):
    found = first_loss(make(), make(hidden_dim=12), TEXTS, relations={-1: -1})
    assert np.isfinite(found["loss"])


@pytest.mark.usefixtures("traces_nothing")
def test_a_student_learns_and_the_teacher_stays(make):
    teacher = make(num_layers=2)
    teacher.get_layer("classification_head").trainable = False
    student = reduce_layers(teacher, 1)
    before = [np.asarray(weight) for weight in teacher.weights]
    options = {"optimizer": keras.optimizers.Adam(1e-2), "batch_size": len(TEXTS), "verbose": 0}
    history = distill(teacher, student, TEXTS, hidden_states={-1: -1}, epochs=10, **options).history
    assert history["loss"][-1] < 0.5 * history["loss"][0]
    for weight, value in zip(teacher.weights, before, strict=True):
        np.testing.assert_array_equal(np.asarray(weight), value)
    assert teacher.backbone.trainable
    assert not teacher.get_layer("classification_head").trainable
    theirs, ours = (softmax(task.predict(TEXTS, verbose=0), axis=1) for task in (teacher, student))
    assert np.abs(theirs - ours).max() < 0.2


@pytest.mark.usefixtures("traces_nothing")
def test_vectors_and_scores(make):
    vectors = first_loss(make(BertSentenceEncoder), make(BertSentenceEncoder, seed=3), TEXTS)
    pairs = (TEXTS, TEXTS[::-1])
    scores = first_loss(make(BertCrossEncoder), make(BertCrossEncoder, seed=3), pairs, [0.0, 1.0] * 4)
    assert 0 < vectors["distillation_loss"] < 1
    assert scores["loss"] == pytest.approx((scores["student_loss"] + scores["distillation_loss"]) / 2)


@pytest.mark.usefixtures("traces_nothing")
def test_several_labels(make):
    options = {"num_classes": 2, "problem_type": "multi_label_classification"}
    teacher, student = make(**options), make(**options, seed=3)
    found = first_loss(teacher, student, TEXTS, temperature=1.0)
    theirs, ours = (task.predict(TEXTS, verbose=0) for task in (teacher, student))
    expected = tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.sigmoid(theirs), logits=ours)
    assert found["loss"] == pytest.approx(float(tf.reduce_mean(expected)), abs=FLOAT32)


@pytest.mark.usefixtures("traces_nothing")
@pytest.mark.parametrize("problem_type", ["single_label_classification", "multi_label_classification"])
def test_classes_are_compared_by_name(make, problem_type):
    """A student with the teacher's own answers in another order has nothing to learn."""
    teacher = make(class_names=["x", "y", "z"], problem_type=problem_type)
    student = make(class_names=["z", "x", "y"], problem_type=problem_type)
    for weight, value in zip(student.weights, teacher.get_weights(), strict=True):
        weight.assign(value[..., [2, 0, 1]] if "classification_head" in weight.path else value)
    same = first_loss(teacher, teacher_copy(make, teacher, problem_type), TEXTS)["distillation_loss"]
    assert first_loss(teacher, student, TEXTS)["distillation_loss"] == pytest.approx(same, abs=FLOAT32)


def teacher_copy(make, teacher, problem_type):
    """A task equal to the teacher."""
    copy = make(class_names=teacher.class_names, problem_type=problem_type)
    copy.set_weights(teacher.get_weights())
    return copy


@pytest.mark.usefixtures("traces_nothing")
def test_classes_without_names_are_compared_by_position(make):
    teacher = make(problem_type="single_label_classification", num_classes=2)
    expected = first_loss(teacher, make(class_names=["x", "y"], seed=3), TEXTS)
    assert first_loss(teacher, make(class_names=["y", "x"], seed=3), TEXTS) == pytest.approx(expected, abs=FLOAT32)


class TestErrors:
    def test_classes(self, make):
        with pytest.raises(TypeError, match="must be two classifiers, two cross-encoders or two sentence encoders"):
            distill(make(), make(BertSentenceEncoder), TEXTS)

    def test_names_of_classes(self, make):
        with pytest.raises(ValueError, match=r"teacher's class_names.*student=\['x', 'y'\] and \['x', 'other'\]"):
            distill(make(), make(class_names=["x", "other"]), TEXTS)

    @pytest.mark.parametrize("is_swapped", [False, True])
    def test_several_labels_beside_one(self, make, is_swapped):
        tasks = [make(), make(class_names=["x", "y"], problem_type="multi_label_classification")]
        with pytest.raises(ValueError, match="`student` must have the teacher's problem_type"):
            distill(*(reversed(tasks) if is_swapped else tasks), TEXTS)

    def test_tokenizers(self, make, new_backbone, preprocessor):
        config = preprocessor.tokenizer.get_config()

        def student(**options):
            tokenizer = BertTokenizer(**{**config, **options})
            other = BertPreprocessor(tokenizer, max_length=13)
            return BertClassifier(new_backbone(), class_names=["x", "y"], preprocessor=other)

        with pytest.raises(ValueError, match=r"teacher's tokenizer. Received: student=lowercase=\w+.* and lowercase="):
            distill(make(), student(lowercase=not config["lowercase"]), TEXTS)
        reading = student(split_chinese=not config["split_chinese"]), student(strip_accents=config["lowercase"])
        with pytest.warns(UserWarning, match="split_chinese=True and split_chinese=False"):
            _check_tasks(make(), reading[0])
        with warnings.catch_warnings(action="error"):
            _check_tasks(make(), reading[1])  # what None means, written out

    def test_vocabulary(self, make, new_backbone):
        other = BertPreprocessor(BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"]), max_length=13)
        student = BertClassifier(new_backbone(), class_names=["x", "y"], preprocessor=other)
        with pytest.raises(ValueError, match="`student` must have the teacher's vocabulary"):
            distill(make(), student, TEXTS)

    def test_widths(self, make):
        with pytest.raises(ValueError, match=r"`hidden_states` must be None where the widths.*Use `relations`"):
            distill(make(), make(hidden_dim=12), TEXTS, hidden_states={0: 0})

    def test_layers(self, make):
        with pytest.raises(ValueError, match="indices from -4 to 3"):
            distill(make(num_layers=3), make(), TEXTS, hidden_states={0: 4})

    def test_labels(self, make):
        with pytest.raises(ValueError, match="`student_loss_weight` must be 0 without labels"):
            distill(make(), make(), TEXTS, student_loss_weight=0.5)
