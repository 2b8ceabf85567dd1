import keras
import numpy as np
import pytest
from safetensors.numpy import save_file

from keras_bert_layers import BertClassifier, BertSentenceEncoder, load_backbone, load_task
from keras_bert_layers.checkpoints import CheckpointError, load_report

TEXTS = ["a good film", "bad, bad night", "good"]
# Two ways through the same float32 sums.
TOLERANCE = 1e-5
# Eight bits of mantissa, through two layers of random weights.
BFLOAT16_TOLERANCE = 0.05


def outputs(model, preprocessor):
    """The model's outputs without a compiled function, whose trace takes seconds."""
    return keras.tree.map_structure(keras.ops.convert_to_numpy, model(preprocessor(TEXTS)))


@pytest.fixture
def sentence_encoder(checkpoint, huggingface):
    huggingface.write_json(checkpoint / "sentence_bert_config.json", {"max_seq_length": 6, "do_lower_case": False})
    return huggingface.add_modules(checkpoint)


@pytest.fixture
def classifier(huggingface, tmp_path):
    config = {**huggingface.CONFIG, **huggingface.CLASSIFIER, "classifier_dropout": 0.3}
    tensors = huggingface.random_tensors(prefix="bert.", head=3)
    return huggingface.write(tmp_path / "classifier", config=config, tensors=tensors)


def test_sentence_transformers_directory(sentence_encoder):
    task = load_task(sentence_encoder)
    assert isinstance(task, BertSentenceEncoder)
    assert (task.pooling, task.normalize, task.preprocessor.max_length) == ("cls", True, 6)
    vectors = task.predict(TEXTS, verbose=0)
    sequence = outputs(load_backbone(sentence_encoder), task.preprocessor)["sequence_output"]
    expected = sequence[:, 0] / np.linalg.norm(sequence[:, 0], axis=-1, keepdims=True)
    np.testing.assert_allclose(vectors, expected, atol=TOLERANCE)


def test_report_of_a_sentence_encoder(sentence_encoder):
    report = load_report(load_task(sentence_encoder))
    assert (len(report.loaded), report.fresh, report.ignored) == (39, (), {})


def test_sentence_encoder_without_a_pooler_does_not_warn(sentence_encoder, huggingface):
    huggingface.write(sentence_encoder, tensors=huggingface.random_tensors(pooler=False))
    assert len(load_report(load_task(sentence_encoder)).fresh) == 2


def test_sentence_encoder_of_a_plain_bert(checkpoint):
    task = load_task(checkpoint, "sentence_encoder", pooling="max", normalize=False)
    assert (task.pooling, task.normalize, task.preprocessor.max_length) == ("max", False, 17)


def test_the_longest_text(classifier, checkpoint, sentence_encoder):
    assert load_task(classifier, max_length=5).preprocessor.max_length == 5
    assert load_task(sentence_encoder, max_length=4).preprocessor.max_length == 4
    assert load_task(checkpoint, "question_answerer", max_length=9).preprocessor.max_length == 9
    with pytest.raises(ValueError, match="`max_length` must be None beside a `preprocessor`"):
        load_task(classifier, max_length=5, preprocessor=None)
    with pytest.raises(ValueError, match="max_length"):
        load_task(classifier, max_length=500)


def test_trained_classifier(classifier, huggingface):
    task = load_task(classifier)
    assert isinstance(task, BertClassifier)
    assert (task.class_names, task.dropout) == (["bad", "fair", "good"], 0.3)
    tensors = huggingface.random_tensors(prefix="bert.", head=3)
    pooled = outputs(task.backbone, task.preprocessor)["pooled_output"]
    logits = task.predict(TEXTS, verbose=0)
    expected = pooled @ tensors["classifier.weight"].T + tensors["classifier.bias"]
    np.testing.assert_allclose(logits, expected, atol=TOLERANCE)
    report = load_report(task)
    assert (len(report.loaded), report.fresh, report.ignored) == (41, (), {})
    assert load_report(task.backbone) == report


def test_trained_classifier_without_class_names(classifier, huggingface):
    config = {**huggingface.CONFIG, "architectures": ["BertForSequenceClassification"]}
    tensors = huggingface.random_tensors(prefix="bert.", head=2)
    huggingface.write(classifier, config=config, tensors=tensors)
    assert load_task(classifier).class_names == ["LABEL_0", "LABEL_1"]


def test_dropout_of_the_head_defaults_to_the_encoders(classifier, huggingface):
    huggingface.write_json(classifier / "config.json", {**huggingface.CONFIG, **huggingface.CLASSIFIER})
    assert load_task(classifier).dropout == huggingface.CONFIG["hidden_dropout_prob"]


def test_other_names_for_the_classes(classifier):
    assert load_task(classifier, class_names=["-", "0", "+"]).class_names == ["-", "0", "+"]


def test_classifier_without_its_head(classifier, huggingface):
    config = {**huggingface.CONFIG, **huggingface.CLASSIFIER}
    huggingface.write(classifier, config=config, tensors=huggingface.random_tensors(prefix="bert."))
    with pytest.raises(CheckpointError, match=r"names BertForSequenceClassification, whose head the weights lack"):
        load_task(classifier)
    with pytest.warns(UserWarning, match=r"names BertForSequenceClassification, and the weights hold no such head"):
        assert load_task(classifier, "classifier").class_names == ["bad", "fair", "good"]


@pytest.mark.filterwarnings("ignore:.*its head, .*, is new")
def test_fresh_classifier(checkpoint):
    task = load_task(checkpoint, task="classifier", num_classes=4)
    assert task.predict(TEXTS, verbose=0).shape == (3, 4)
    assert load_report(task).fresh == ("classification_head/dense/kernel", "classification_head/dense/bias")


def test_fresh_classifier_of_a_sentence_encoder(sentence_encoder):
    task = load_task(sentence_encoder, task="classifier", class_names=["bad", "good"])
    assert (task.num_classes, task.preprocessor.max_length) == (2, 6)


def test_fresh_classifier_without_a_pooler_warns(checkpoint, huggingface):
    huggingface.write(checkpoint, tensors=huggingface.random_tensors(pooler=False))
    with pytest.warns(UserWarning, match=r"has no pooler"):
        task = load_task(checkpoint, "classifier", num_classes=2)
    assert len(load_report(task).fresh) == 4


def test_fresh_classifier_with_a_pooling_of_its_own(checkpoint, huggingface):
    """It does not read the pooler, so a missing one is no warning."""
    huggingface.write(checkpoint, tensors=huggingface.random_tensors(pooler=False))
    task = load_task(checkpoint, "classifier", num_classes=2, pooling="mean", normalize=True)
    assert (task.pooling, task.normalize) == ("mean", True)


def test_trained_classifier_with_another_pooling(classifier):
    with pytest.raises(ValueError, match=r"`load_task`: `pooling` must be None: .* pooler.*For a new head"):
        load_task(classifier, pooling="mean")


def test_fresh_classifier_needs_a_number_of_classes(checkpoint):
    with pytest.raises(ValueError, match=r"`load_task`: `num_classes` must be given.*or `class_names`"):
        load_task(checkpoint, "classifier")


def test_fresh_token_classifier_needs_tags(checkpoint):
    with pytest.raises(ValueError, match=r"`load_task`: `tag_names` must be given.*such as \[\"O\", \"B-PER\""):
        load_task(checkpoint, "token_classifier")


def test_an_option_that_the_task_does_not_have(checkpoint):
    with pytest.raises(
        TypeError, match=r"`load_task`: `BertClassifier` has no argument 'classes'. The .* are num_clas"
    ):
        load_task(checkpoint, "classifier", classes=["a", "b"])
    with pytest.raises(
        TypeError, match=r"'padding'\. Give `preprocessor=load_preprocessor\(source, padding='longest'\)`"
    ):
        load_task(checkpoint, "classifier", num_classes=2, padding="longest")


def test_number_of_classes_unlike_the_checkpoint(classifier):
    with pytest.raises(
        ValueError, match=r"`num_classes` must be the checkpoint's 3\. Received: num_classes=5\. For a new head"
    ):
        load_task(classifier, num_classes=5)


@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("cross_encoder", {}),
        ("masked_lm", {"top_k": 3}),
        ("multiple_choice", {}),
        ("pretrainer", {}),
        ("question_answerer", {"n_best": 4}),
        ("token_classifier", {"tag_names": ["O", "B-x", "I-x"]}),
    ],
)
def test_fresh_head_of_every_task(checkpoint, task, options):
    model = load_task(checkpoint, task, **options)
    assert type(model).__name__.lower() == "bert" + task.replace("_", "")
    report = load_report(model)
    assert len(report.loaded) == 39
    assert report.fresh
    assert not any(path.startswith("pooler") for path in report.fresh)
    assert all(getattr(model, name) == value for name, value in options.items())


NEW_HEAD = "its head, .*, is new: .* Train it with `fit`"
TAGS = ["O", "B-x", "I-x"]
WAYS_TO_ANSWER = {
    "masked_lm": ({}, lambda task: task.answer("a [MASK] film")),
    "pretrainer": ({}, lambda task: task.answer(("a film", "good"))),
    "question_answerer": ({}, lambda task: task.answer(("film", "a good film"))),
    "multiple_choice": ({}, lambda task: task.answer(("a", ["film", "night"]))),
    "cross_encoder": ({}, lambda task: task.rank("film", ["good film", "bad film"])),
    "classifier": ({"num_classes": 2}, lambda task: task.predict(TEXTS, verbose=0)),
    "token_classifier": ({"tag_names": TAGS}, lambda task: task.predict_on_batch(task.preprocessor(TEXTS))),
}


@pytest.mark.parametrize("kind", WAYS_TO_ANSWER)
def test_new_head_warns_once_before_it_was_trained(checkpoint, kind):
    options, answer = WAYS_TO_ANSWER[kind]
    task = load_task(checkpoint, kind, **options)
    with pytest.warns(UserWarning, match=f"`{type(task).__name__}`: {NEW_HEAD}") as found:
        answer(task)
    assert sum("is new" in str(warning.message) for warning in found) == 1
    answer(task)  # and not again


def _train(task, **options):
    if options:
        task.compile(**options)
    ids, labels, _ = task.pipeline.batches.one(TEXTS, [1, 0, 1])
    task.train_on_batch(ids, labels)


def _read_weights(task, folder):
    other = BertClassifier.from_config(task.get_config())
    other.save_weights(folder / "other.weights.h5")
    task.load_weights(folder / "other.weights.h5")


GIVEN_WEIGHTS = {
    "train_on_batch": lambda task, _: _train(task),
    "the first step of a warm-up": lambda task, _: _train(task, optimizer=keras.optimizers.SGD(0.0)),
    "load_weights": _read_weights,
    "set_weights": lambda task, _: task.set_weights([weight + 1 for weight in task.get_weights()]),
}


@pytest.mark.parametrize("way", GIVEN_WEIGHTS)
def test_head_that_was_given_weights_does_not_warn(checkpoint, tmp_path, way):
    task = load_task(checkpoint, "classifier", num_classes=2)
    GIVEN_WEIGHTS[way](task, tmp_path)
    task.answer(TEXTS)


def test_new_head_warns_before_an_export(checkpoint):
    task = load_task(checkpoint, "classifier", num_classes=2)
    with pytest.warns(UserWarning, match=NEW_HEAD), pytest.raises(ValueError, match="`format` must be one of"):
        task.export("nowhere", format="tflite")


def test_dual_encoder_of_a_sentence_encoder(sentence_encoder):
    task = load_task(sentence_encoder, "dual_encoder", temperature=0.1)
    assert (task.pooling, task.normalize, task.temperature, task.preprocessor.max_length) == ("cls", True, 0.1, 6)
    expected = outputs(load_task(sentence_encoder), task.preprocessor)
    np.testing.assert_allclose(task.predict(TEXTS, verbose=0), expected, atol=TOLERANCE)


def test_a_custom_preprocessor(checkpoint, preprocessor):
    assert load_task(checkpoint, "sentence_encoder", preprocessor=preprocessor).preprocessor is preprocessor


def test_without_a_preprocessor_no_vocabulary_is_needed(checkpoint):
    (checkpoint / "vocab.txt").unlink()
    assert load_task(checkpoint, "classifier", num_classes=2, preprocessor=None).preprocessor is None


def test_checkpoint_that_does_not_state_its_task(checkpoint):
    with pytest.raises(
        CheckpointError,
        match=r"does not state its task\. Give one of \['classifier', 'cross_encoder'",
    ):
        load_task(checkpoint)


def test_unknown_task(checkpoint):
    with pytest.raises(ValueError, match=r"`load_task`: `task` must be one of \['classifier', 'cross_encoder'"):
        load_task(checkpoint, "translator")


def test_problem_type_that_transformers_does_not_have(classifier, huggingface):
    config = {**huggingface.CONFIG, **huggingface.CLASSIFIER, "problem_type": "ranking"}
    huggingface.write_json(classifier / "config.json", config)
    message = r"config\.json: `problem_type` must be one of \['single_label_classification', 'multi_label"
    with pytest.raises(CheckpointError, match=message):
        load_task(classifier)


@pytest.mark.parametrize("rate", ["x", True, [], -1, float("nan")])
def test_dropout_that_is_not_a_share(classifier, huggingface, rate):
    config = {**huggingface.CONFIG, **huggingface.CLASSIFIER, "classifier_dropout": rate}
    huggingface.write_json(classifier / "config.json", config)
    with pytest.raises(CheckpointError, match=r"config\.json: `classifier_dropout` must be a number of at least 0"):
        load_task(classifier)


@pytest.mark.filterwarnings("ignore:.*the weights hold the trained head of a BertClassifier")
@pytest.mark.parametrize("task", ["classifier", None], ids=["trained head", "fresh head"])
def test_dtype(classifier, task):
    options = {"task": "token_classifier", "tag_names": ["O", "B-x", "I-x"]} if task is None else {"task": task}
    model = load_task(classifier, dtype="mixed_bfloat16", **options)
    assert (model.dtype_policy.name, model.backbone.compute_dtype) == ("mixed_bfloat16", "bfloat16")
    assert {weight.dtype for weight in model.weights} == {"float32"}


def test_dtype_bfloat16(classifier, huggingface):
    model = load_task(classifier, dtype="bfloat16")
    kernel = next(weight for weight in model.backbone.weights if weight.path.endswith("query_key_value/kernel"))
    assert kernel.dtype == "bfloat16"
    expected = outputs(load_task(classifier), model.preprocessor)
    np.testing.assert_allclose(model.predict(TEXTS, verbose=0), expected, atol=BFLOAT16_TOLERANCE)


@pytest.mark.slow
def test_saved_task(checkpoint, tmp_path):
    task, path = load_task(checkpoint, "classifier", num_classes=2), tmp_path / "task.keras"
    ids, labels, _ = task.pipeline.batches.one(TEXTS, [1, 0, 1])
    task.train_on_batch(ids, labels)
    task.save(path)
    again = load_task(path, "classifier")
    np.testing.assert_allclose(again.predict(TEXTS, verbose=0), outputs(task, task.preprocessor), atol=TOLERANCE)
    with pytest.raises(CheckpointError, match=r"must hold a BertSentenceEncoder\. Received: a BertClassifier"):
        load_task(path, "sentence_encoder")


def test_saved_task_takes_no_options(tmp_path):
    with pytest.raises(ValueError, match=r"a \.keras file takes no options\. Received: \['dtype'\]"):
        load_task(tmp_path / "model.keras", dtype="bfloat16")
    with pytest.raises(ValueError, match=r"\['max_length'\]\. Load it, and set `task.preprocessor` to a new one"):
        load_task(tmp_path / "model.keras", max_length=8)
    with pytest.raises(ValueError, match=r"a \.keras file takes no options\. Received: \['num_classes'\]"):
        load_task(tmp_path / "x.keras", num_classes=2)


def test_saved_model_that_is_not_a_task(tmp_path):
    keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]).save(tmp_path / "x.keras")
    with pytest.raises(
        CheckpointError, match=r"must hold a BertClassifier or BertCrossEncoder or .*\. Received: a Sequential"
    ):
        load_task(tmp_path / "x.keras")


def test_no_such_saved_task(tmp_path):
    with pytest.raises(CheckpointError, match=r"`load_task`: `source` must be an existing file"):
        load_task(tmp_path / "x.keras")


@pytest.fixture
def projected(checkpoint, huggingface):
    """A sentence encoder with a dense layer; the names are those of sentence-transformers, models/Dense.py."""
    huggingface.add_modules(checkpoint, kinds=("Transformer", "Pooling", "Dense", "Normalize"))
    values = {
        "in_features": 15,
        "out_features": 7,
        "bias": True,
        "activation_function": "torch.nn.modules.activation.Tanh",
    }
    huggingface.write_json(checkpoint / "2_Dense" / "config.json", values)
    rng = np.random.default_rng(7)
    tensors = {"linear.weight": rng.normal(0, 0.3, (7, 15)), "linear.bias": rng.normal(0, 0.3, (7,))}
    tensors = {name: array.astype("float32") for name, array in tensors.items()}
    save_file(tensors, checkpoint / "2_Dense" / "model.safetensors")
    return checkpoint, values, tensors


@pytest.mark.parametrize("has_bias", [True, False])
def test_sentence_encoder_with_a_dense_layer(projected, huggingface, has_bias):
    directory, values, tensors = projected
    if not has_bias:
        huggingface.write_json(directory / "2_Dense" / "config.json", {**values, "bias": False})
        save_file({"linear.weight": tensors["linear.weight"]}, directory / "2_Dense" / "model.safetensors")
    task = load_task(directory)
    assert (task.projection_dim, task.projection_activation, load_report(task).fresh) == (7, "tanh", ())
    first = outputs(load_backbone(directory), task.preprocessor)["sequence_output"][:, 0]
    expected = np.tanh(first @ tensors["linear.weight"].T + tensors["linear.bias"] * has_bias)
    expected /= np.linalg.norm(expected, axis=-1, keepdims=True)
    np.testing.assert_allclose(task.predict(TEXTS, verbose=0), expected, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"in_features": 16}, r"`in_features` must be 15\. Received: 16"),
        ({"use_residual": True}, r"`use_residual` must be False\. Received: True"),
        ({"out_features": 0}, r"`out_features` must be an integer of at least 1\. Received: 0"),
        (
            {"activation_function": "torch.nn.modules.activation.Softsign"},
            r"`activation_function` must be one of .*Softsign",
        ),
        ({"module_input_name": "token_embeddings"}, r"`module_input_name` must be 'sentence_embedding'"),
    ],
)
def test_other_dense_layers_are_refused(projected, huggingface, changes, message):
    directory, values, _ = projected
    huggingface.write_json(directory / "2_Dense" / "config.json", {**values, **changes})
    with pytest.raises(CheckpointError, match=rf"2_Dense.config\.json: {message}"):
        load_task(directory)


def test_dense_layer_without_its_files(projected):
    directory, _, _ = projected
    (directory / "2_Dense" / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"2_Dense must hold weights.*Found: config\.json"):
        load_task(directory)
    (directory / "2_Dense" / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"2_Dense.config\.json: the dense layer's config is missing"):
        load_task(directory)
