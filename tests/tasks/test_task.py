"""`Task`: what all tasks have in common."""

import inspect

import keras
import numpy as np
import pytest

import keras_bert_layers as kbl
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks import Task

TEXTS = ["a good film", "bad !", "night", "", "good good good", "unhappy"]
LABELS = [1, 0, 1, 0, 1, 0]
CLASSES = ["bad", "good"]
# What a task may define beside what Keras itself calls; the guide "Write a task of your own" lists them.
HOOKS = {
    "__init__",
    "compute_loss",
    "compute_metrics",
    "default_learning_rate",
    "default_loss",
    "default_loss_weights",
    "default_metrics",
    "get_config",
    "onnx_functions",
    "onnx_outputs",
    "output_name",
    "part",
    "reads_pooled_output",
    "serve",
    "signatures",
    "weighs_metrics",
}
KERAS_CALLS = {"__module__", "__doc__", "__annotations__", "train_step", "test_step", "get_metrics_result"}
MASKED = (kbl.BertMaskedLM, kbl.BertPretrainer)
TASKS = [getattr(kbl.tasks, name) for name in kbl.tasks.__all__ if name.startswith("Bert")]


@pytest.fixture
def classifier(new_backbone, preprocessor):
    return kbl.BertClassifier(new_backbone(), class_names=CLASSES, preprocessor=preprocessor)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.__name__)
class TestClasses:
    def test_nothing_stands_between_a_task_and_keras(self, task):
        assert task.__bases__ == (Task,)
        ours = [base for base in task.__mro__ if base.__module__.startswith("keras_bert_layers")]
        assert ours == [task, Task]

    def test_overrides_hooks_only(self, task):
        overridden = {name for name in vars(task) if name in vars(Task) or hasattr(keras.Model, name)}
        assert overridden <= HOOKS | {
            "__module__",
            "__doc__",
            "__annotations__",
            "__firstlineno__",  # this and the next: since Python 3.13
            "__static_attributes__",
            "train_step",
            "test_step",
            "get_metrics_result",
            "predict",  # of encoders, with `prompt`
            "export_search",  # of encoders
            "__dir__",  # of the classifier: Keras saves what it lists, and the config holds the columns
        }

    @pytest.mark.parametrize(
        "method",
        ["compile", "fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch", "save"],
    )
    def test_methods_name_kerass_arguments_in_its_order(self, task, method):
        theirs, ours = (
            dict(list(inspect.signature(getattr(owner, method)).parameters.items())[1:])
            for owner in (keras.Model, task)
        )
        assert [name for name in theirs if name not in ours] == []
        assert [name for name in ours if name in theirs] == list(theirs)
        for name, parameter in theirs.items():
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                assert ours[name].kind is parameter.kind
                assert method == "compile" or ours[name].default == parameter.default

    def test_every_argument_is_in_the_config(self, task):
        arguments = set(list(inspect.signature(task.__init__).parameters)[1:]) - {"masking", "keywords"}
        options = {"num_classes": 2} if "num_classes" in arguments else {}
        options |= {"tag_names": ["O", "B-a", "I-a"]} if "tag_names" in arguments else {}
        config = kbl.BertConfig(vocabulary_size=9, hidden_dim=4, num_layers=1, num_heads=2, intermediate_dim=4)
        backbone = kbl.BertBackbone(config)
        if task is kbl.BertStaticEncoder:
            backbone = kbl.tasks.StaticBackbone(vocabulary_size=9, hidden_dim=4)
        found = task(backbone, **options).get_config()
        masking = set(kbl.preprocessing.Masking().to_dict()) if issubclass(task, MASKED) else set()
        assert set(found) - masking == arguments


def test_a_subclass_without_arguments_of_its_own(backbone):
    class Mine(kbl.BertClassifier):
        pass

    assert Mine(backbone, 2).get_config().keys() == kbl.BertClassifier(backbone, 2).get_config().keys()


class TestWhatChangesTheAnswers:
    """Traced functions are dropped by whatever changes the model or its answers."""

    @pytest.mark.slow
    def test_class_names(self, classifier):
        before = classifier.answer(TEXTS)["label"].tolist()
        classifier.class_names = ["negative", "positive"]
        names = {"bad": "negative", "good": "positive"}
        assert classifier.answer(TEXTS)["label"].tolist() == [names[label] for label in before]
        assert classifier.get_config()["class_names"] == ["negative", "positive"]
        with pytest.raises(ValueError, match="`class_names` must hold 2 different names"):
            classifier.class_names = ["one"]

    @pytest.mark.slow
    def test_threshold(self, backbone, preprocessor):
        classifier = kbl.BertClassifier(
            backbone, class_names=CLASSES, problem_type="multi_label_classification", preprocessor=preprocessor
        )
        classifier.threshold = 0.0
        assert classifier.answer(TEXTS)["label"].shape == (6, 2)
        classifier.threshold = 0.999999
        assert classifier.answer(TEXTS)["label"].shape == (6, 0)
        with pytest.raises(ValueError, match="`threshold` must be at least 0 and less than 1"):
            classifier.threshold = 1.5

    @pytest.mark.slow
    def test_top_k(self, backbone, preprocessor):
        masked_lm = kbl.BertMaskedLM(backbone, preprocessor, top_k=2)
        assert masked_lm.answer(["a [MASK]"])["token"].shape == (1, 1, 2)
        masked_lm.top_k = 4
        assert masked_lm.answer(["a [MASK]"])["token"].shape == (1, 1, 4)
        masked_lm.top_k = 10_000
        with pytest.raises(ValueError, match="`top_k` must be at most .*, the vocabulary's size"):
            masked_lm.answer(["a [MASK]"])

    @pytest.mark.slow
    def test_answers_to_questions(self, backbone, preprocessor):
        answerer = kbl.BertQuestionAnswerer(backbone, preprocessor, n_best=3)
        x = (["good ?"], ["a bad film , a good night"])
        assert answerer.best_answers(x)["answer"].shape == (1, 3)
        answerer.n_best = 2
        assert answerer.best_answers(x)["answer"].shape == (1, 2)
        answerer.max_answer_length = 1
        answers = answerer.best_answers(x)
        assert all(" " not in answer for answer in answers["answer"][0])

    @pytest.mark.slow
    @pytest.mark.parametrize("change", ["lora", "int8", "int8 of the backbone"])
    def test_the_model(self, change, vocabulary, preprocessor):
        keras.utils.set_random_seed(3)
        config = kbl.BertConfig(
            vocabulary_size=len(vocabulary),
            hidden_dim=8,
            num_layers=1,
            num_heads=2,
            intermediate_dim=16,
            initializer_range=0.3,
        )
        classifier = kbl.BertClassifier(kbl.BertBackbone(config), 2, preprocessor=preprocessor)
        before, answers = classifier.predict(TEXTS, verbose=0), classifier.answer(TEXTS)
        classifier.evaluate(TEXTS, LABELS, verbose=0)
        if change == "int8":
            classifier.quantize("int8")
        elif change == "int8 of the backbone":
            classifier.backbone.quantize("int8")
        else:
            dense = [layer for layer in classifier._flatten_layers() if type(layer) is keras.layers.Dense]
            for layer in dense:
                layer.enable_lora(2)
            classifier.compile(keras.optimizers.SGD(5.0))
            classifier.fit(TEXTS, LABELS, verbose=0)
        expected = np.asarray(classifier(preprocessor(TEXTS)))
        found = classifier.predict(TEXTS, verbose=0)
        losses = keras.losses.sparse_categorical_crossentropy(np.asarray(LABELS), expected, from_logits=True)
        assert classifier.evaluate(TEXTS, LABELS, verbose=0)[0] == pytest.approx(np.mean(losses), abs=1e-5)
        assert np.abs(expected - before).max() > 1e-5
        np.testing.assert_allclose(found, expected, atol=1e-5)  # the same float32 sums in batches of other sizes
        assert np.abs(classifier.answer(TEXTS)["probabilities"] - answers["probabilities"]).max() > 1e-6

    def test_the_preprocessor(self, classifier, preprocessor):
        before = classifier.predict(["good film night bad"], verbose=0)
        classifier.preprocessor = kbl.BertPreprocessor(preprocessor.tokenizer, max_length=3)
        after = classifier.predict(["good film night bad"], verbose=0)
        assert np.abs(before - after).max() > 1e-6
        np.testing.assert_allclose(after, classifier.predict(["good"], verbose=0), atol=1e-6)
        long = kbl.BertPreprocessor(preprocessor.tokenizer, max_length=10_000)
        with pytest.raises(ValueError, match=r"`preprocessor.max_length` must be at most the backbone's"):
            classifier.preprocessor = long


def test_no_dataset_is_tuned_as_it_runs(classifier, preprocessor, monkeypatch):
    # The end of a tuned one waits for its tuner: half of a short training's time.
    seen = []
    monkeypatch.setattr(
        keras.Model, "fit", lambda self, x, *args, **kwargs: seen.extend([x, kwargs["validation_data"]])
    )
    monkeypatch.setattr(keras.Model, "evaluate", lambda self, x, *args, **kwargs: seen.append(x))
    texts = tf.data.Dataset.from_tensor_slices((TEXTS, LABELS)).batch(2)
    ids = texts.map(lambda text, label: (preprocessor(text), label))
    for data in ((TEXTS, np.array(LABELS)), (texts, None), (ids, None)):
        classifier.fit(*data, validation_data=data if data[1] is not None else data[0])
        classifier.evaluate(*data)
    assert [data.options().autotune.enabled for data in seen] == [False] * 9
    options = tf.data.Options()
    options.autotune.enabled = True
    classifier.evaluate(texts.with_options(options))
    assert seen[-1].options().autotune.enabled


class TestArguments:
    def test_weights_are_not_labels(self, classifier):
        for method in (classifier.train_on_batch, classifier.test_on_batch):
            with pytest.raises(ValueError, match="`y` must hold one label for each text"):
                method(TEXTS, sample_weight=np.ones(len(TEXTS)))

    @pytest.mark.parametrize("method", ["fit", "evaluate"])
    def test_a_batch_size_beside_a_dataset(self, classifier, method):
        dataset = tf.data.Dataset.from_tensor_slices((TEXTS, LABELS)).batch(2)
        with pytest.raises(ValueError, match="`batch_size` must be None where `x` is a dataset"):
            getattr(classifier, method)(dataset, batch_size=2)

    def test_fit_takes_what_keras_takes_in_its_order(self, classifier):
        classifier.backbone.trainable = False  # less work in each step
        classifier.compile(run_eagerly=True)
        validation_data = (TEXTS[:2], LABELS[:2])
        history = classifier.fit(TEXTS, LABELS, 3, 2, 0, None, 0.0, validation_data, validation_batch_size=None)
        assert len(history.epoch) == 2
        assert classifier.optimizer.iterations == 4
        assert "val_loss" in history.history

    @pytest.mark.slow
    def test_validation_has_the_batch_size_of_training(self, classifier):
        batches = []
        original = classifier.pipeline.batches.validation
        classifier.pipeline.batches.validation = lambda data, size: batches.append(size) or original(data, size)
        classifier.compile(run_eagerly=True)
        classifier.fit(TEXTS, LABELS, 3, validation_data=(TEXTS, LABELS), validation_batch_size=None, verbose=0)
        assert batches == [3]

    @pytest.mark.parametrize("method", ["predict", "answer", "evaluate"])
    def test_ragged_strings(self, classifier, method):
        with pytest.raises(
            TypeError, match="`x` must hold one text per row. Received: .*RaggedTensor.* Join the words"
        ):
            getattr(classifier, method)(tf.ragged.constant([["a", "b"], ["c"]]))

    def test_one_batch_takes_what_keras_takes(self, classifier):
        classifier.compile(run_eagerly=True)
        found = classifier.train_on_batch(TEXTS, LABELS, None, {"good": 0.0}, True)
        assert found == classifier.get_metrics_result()
        assert classifier.test_on_batch(TEXTS, ["good"] * 6, None, True)["loss"] > 0

    def test_export_as_keras_calls_it(self, new_backbone, tmp_path, capsys):
        classifier = kbl.BertClassifier(new_backbone(), 2)  # of ids, which is quicker to export
        classifier.export(tmp_path / "quiet", "tf_saved_model", False, warm_up=False)
        assert not capsys.readouterr().out
        classifier.export(tmp_path / "model", format="tf_saved_model", verbose=True, warm_up=False)
        assert str(tmp_path / "model") in capsys.readouterr().out
        with pytest.raises(ValueError, match="`format` must be 'tf_saved_model'|`format` must be one of"):
            classifier.export(tmp_path / "other", format="litert")


@pytest.mark.parametrize("labels", [np.zeros((3, 2)), [[0, 1], [1, 0], [0, 0]]])
def test_pretrainer_labels_of_two_axes(backbone, preprocessor, labels):
    pretrainer = kbl.BertPretrainer(backbone, preprocessor)
    with pytest.raises(ValueError, match=r"every label must be 0 .* Received: shape=\(3, 2\)"):
        pretrainer.fit((TEXTS[:3], TEXTS[3:]), labels)
