import collections
import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers import (
    BertBackbone,
    BertClassifier,
    BertMaskedLM,
    BertPreprocessor,
    BertSentenceEncoder,
    BertTokenClassifier,
)
from keras_bert_layers.export._operations import nodes_of
from keras_bert_layers.export.saved_model import saved_model_pb2
from keras_bert_layers.layers.encoder_parts import EncoderParts
from keras_bert_layers.tasks import CombinedTasks
from keras_bert_layers.tasks.serving.export import copy_in_dtype

TEXTS = ["a good film", "", "bad", "unhappy night , a bad film , good night , a good film !", "night film"]
TAGS = ["O", "B-what", "I-what"]
NUM_LAYERS = 3
# float32 sums in another order: the batches differ.
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def trained_backbone(new_backbone):
    """Makes the backbone of a task: pretrained weights, and in the upper blocks LoRA matrices of its own."""

    def make(seed, *, lora_blocks=2, **options):
        backbone = new_backbone(num_layers=NUM_LAYERS, **options)
        backbone.enable_lora(2, lora_blocks=lora_blocks)
        return changed(backbone, seed)

    return make


def changed(backbone, seed):
    """A backbone with random changes of what is trained."""
    draw = np.random.default_rng(seed)
    for weight in backbone.trainable_weights:
        weight.assign(weight + draw.normal(0, 0.3, weight.shape))
    return backbone


@pytest.fixture(scope="module")
def preprocessor(tokenizer):
    return BertPreprocessor(tokenizer, max_length=9)


@pytest.fixture(scope="module")
def tasks(trained_backbone, preprocessor):
    return {
        "mood": BertClassifier(trained_backbone(1), class_names=["good", "bad"], preprocessor=preprocessor),
        "entities": BertTokenClassifier(trained_backbone(2), TAGS, preprocessor=preprocessor),
        "topic": BertClassifier(trained_backbone(3), 3, preprocessor=preprocessor, pooling="mean"),
        "vector": BertSentenceEncoder(trained_backbone(4, lora_blocks=1), preprocessor=preprocessor),
        "word_entities": BertTokenClassifier(
            trained_backbone(5), TAGS, aggregation="average", preprocessor=preprocessor
        ),
    }


@pytest.fixture(scope="module")
def combined(tasks):
    return CombinedTasks(tasks)


@pytest.fixture(scope="module")
def of_whole_texts(tasks):
    return CombinedTasks({name: tasks[name] for name in ("mood", "topic", "vector")})


def assert_equal(found, wanted):
    assert list(found) == list(wanted)
    for key, values in wanted.items():
        assert found[key].dtype == values.dtype
        if values.dtype == object:
            assert found[key].tolist() == values.tolist()
        else:
            np.testing.assert_allclose(found[key], values, rtol=0, atol=TOLERANCE, err_msg=key)


@pytest.mark.filterwarnings("ignore:.*are cut")
@pytest.mark.parametrize("model", ["combined", "of_whole_texts"])
def test_outputs_and_answers_are_those_of_each_task(model, request, eagerly):
    """One of the models predicts in graph."""
    in_graph, model = model == "of_whole_texts", request.getfixturevalue(model)
    assert model.num_shared_blocks == NUM_LAYERS - 2
    with contextlib.nullcontext() if in_graph else eagerly():
        outputs = model.predict(TEXTS, verbose=0)
    with eagerly():
        assert_equal(outputs, {name: task.predict(TEXTS, verbose=0) for name, task in model.tasks.items()})
        answers = model.answer(TEXTS)
        assert list(answers) == list(model.tasks)
        for name, task in model.tasks.items():
            assert_equal(answers[name], task.answer(TEXTS))


@pytest.mark.usefixtures("traces_nothing")
def test_a_single_text_no_text_and_a_stream(combined):
    single, rows = combined.answer("bad night"), combined.answer(["bad night"])
    assert single["mood"]["label"] == rows["mood"]["label"][0]
    assert {name: values.shape[0] for name, values in combined.predict([], verbose=0).items()} == dict.fromkeys(
        combined.tasks, 0
    )
    outputs = combined.predict(["bad night", "film"], verbose=0)
    for row, found in enumerate(combined.predict_stream(["bad night", "film"])):
        assert list(found) == list(combined.tasks)
        np.testing.assert_allclose(found["vector"], outputs["vector"][row], atol=TOLERANCE)
        num_words = len(found["entities"])
        np.testing.assert_allclose(found["entities"], outputs["entities"][row, :num_words], atol=TOLERANCE)
        assert num_words == 2 - row


@pytest.fixture(scope="module")
def served(combined, tmp_path_factory):
    path = combined.export(tmp_path_factory.mktemp("combined") / "model", warm_up=False)
    return path, tf.saved_model.load(str(path)).signatures


def test_the_saved_model_has_the_answers_of_each_task(served, tasks, eagerly):
    _, signatures = served
    answers = signatures["serving_default"](tf.constant(TEXTS))
    assert (answers.pop("bytes_cut").numpy() == 0).all()
    with eagerly():
        logits = tasks["mood"].predict(TEXTS[:1], verbose=0)
        wanted = {f"{name}_{key}": values for name, task in tasks.items() for key, values in task.answer(TEXTS).items()}
    assert sorted(answers) == sorted(wanted)
    for key, values in wanted.items():
        found = answers[key].numpy()
        if values.dtype == object:
            found = np.char.decode(found.astype(bytes), "utf-8")
            assert found.tolist() == values.tolist()
        else:
            np.testing.assert_allclose(found, values, rtol=0, atol=TOLERANCE, err_msg=key)
    ids = {name: values[:1] for name, values in tasks["mood"].preprocessor(TEXTS).items()}
    np.testing.assert_allclose(signatures["token_ids"](**ids)["mood"], logits, atol=TOLERANCE)


def reads(model):
    """How often a graph of the model reads each variable, by the variable's id; and its matrix products."""
    specs = {name: tf.TensorSpec([None, None], "int32") for name in model.input}
    graph = tf.function(lambda ids: model(ids, training=False)).get_concrete_function(specs).graph
    variables = {internal.name: id(external) for external, internal in graph.captures}
    operations = graph.get_operations()
    counts = collections.Counter(variables[op.inputs[0].name] for op in operations if op.type == "ReadVariableOp")
    return counts, sum("MatMul" in op.type for op in operations)


def test_shared_blocks_run_once(served, combined, tasks):
    counts, num_products = reads(combined)
    kernels = [
        dense.kernel
        for layer in combined.backbone.layers
        for dense in layer._flatten_layers()
        if hasattr(dense, "kernel")
    ]
    assert len(kernels) == 4 * combined.num_shared_blocks
    assert {counts[id(kernel.value.handle)] for kernel in kernels} == {1}
    # The lower blocks that the other tasks hold are not read at all.
    for name in ("entities", "topic", "vector", "word_entities"):
        lower = tasks[name].backbone.get_layer("encoder_block_0")
        assert not any(counts[id(weight.value.handle)] for weight in lower.weights)
    # All signatures share one graph of the model.
    path, _ = served
    saved = saved_model_pb2.SavedModel.FromString((path / "saved_model.pb").read_bytes())
    assert sum("MatMul" in node.op for node in nodes_of(saved)) == num_products


def test_a_file_holds_everything_and_the_shared_blocks_once(combined, tasks, tmp_path, eagerly):
    combined.save(tmp_path / "combined.keras")
    again = keras.models.load_model(tmp_path / "combined.keras")
    assert again.num_shared_blocks == combined.num_shared_blocks
    with eagerly():
        found, wanted = again.predict(TEXTS, verbose=0), combined.predict(TEXTS, verbose=0)
    for name, values in wanted.items():
        np.testing.assert_array_equal(found[name], values)
    assert again.count_params() == combined.count_params()
    assert combined.count_params() < tasks["mood"].count_params() + sum(
        sum(layer.count_params() for layer in task.layers if not isinstance(layer, BertBackbone))
        + 2 * task.backbone.get_layer("encoder_block_2").count_params()
        for task in tasks.values()
    )
    half = copy_in_dtype(combined, "bfloat16")
    assert half.num_shared_blocks == combined.num_shared_blocks
    ids = combined.preprocessor(TEXTS[:2])
    np.testing.assert_allclose(half(ids)["mood"], combined(ids)["mood"], atol=0.05)  # bfloat16 has 8 bits


def pair(first, second, preprocessor):
    return {
        "first": BertClassifier(first, 2, preprocessor=preprocessor),
        "second": BertClassifier(second, 3, preprocessor=preprocessor, pooling="max"),
    }


@pytest.mark.usefixtures("traces_nothing")
@pytest.mark.parametrize("layer", ["embedding", "encoder_block_0", "encoder_block_2", "pooler"])
def test_the_first_weight_that_differs_ends_what_is_shared(layer, new_backbone, preprocessor):
    first, second = new_backbone(num_layers=NUM_LAYERS), new_backbone(num_layers=NUM_LAYERS)
    weight = second.get_layer(layer).weights[-1]
    value = weight.numpy()
    value.flat[-1] = np.nextafter(value.flat[-1], 9)
    weight.assign(value)
    tasks = pair(first, second, preprocessor)
    if layer == "embedding":
        with pytest.raises(ValueError, match=r"must share at least the embedding.*lora_blocks=2"):
            CombinedTasks(tasks)
        return
    expected = NUM_LAYERS if layer == "pooler" else int(layer[-1])
    combined = CombinedTasks(tasks)
    assert combined.num_shared_blocks == expected
    assert CombinedTasks(tasks, num_shared_blocks=1).num_shared_blocks == min(1, expected)
    assert_equal(
        combined.predict(TEXTS[:3], verbose=0),
        {name: task.predict(TEXTS[:3], verbose=0) for name, task in tasks.items()},
    )


def test_other_options_of_the_encoder_are_not_shared(new_backbone, preprocessor):
    first = new_backbone(num_layers=NUM_LAYERS)

    def shared(**options):
        second = new_backbone(num_layers=NUM_LAYERS, **options)
        second.set_weights(first.get_weights())
        return CombinedTasks(pair(first, second, preprocessor)).num_shared_blocks

    assert shared(dropout=0.3, attention_dropout=0.2) == NUM_LAYERS
    assert shared(activation="relu") == 0
    assert shared(num_heads=5) == 0
    fewer = pair(first, new_backbone(num_layers=NUM_LAYERS), preprocessor)
    fewer["first"].backbone.enable_lora(2, lora_blocks=2)
    assert CombinedTasks(fewer).num_shared_blocks == 1
    same_lora = [new_backbone(num_layers=2) for _ in range(3)]
    for backbone, alpha in zip(same_lora, (2, 2, 3), strict=True):
        backbone.enable_lora(2, lora_alpha=alpha)
        changed(backbone, 3)
        for weight in backbone.trainable_weights:
            weight.assign(np.full(weight.shape, 0.1))
    assert CombinedTasks(pair(*same_lora[:2], preprocessor)).num_shared_blocks == 2
    assert CombinedTasks(pair(*same_lora[1:], preprocessor)).num_shared_blocks == 0


@pytest.mark.parametrize(
    "options",
    [{"parts": EncoderParts(normalize_first=True)}, {"return_attention_scores": True}, {"dtype": "mixed_bfloat16"}],
)
def test_other_encoders(options, new_backbone, preprocessor):
    config = new_backbone(num_layers=NUM_LAYERS).config
    first = BertBackbone(config, **options)
    second = BertBackbone(config, **options)
    second.set_weights(first.get_weights())
    tasks = pair(first, second, preprocessor)
    combined = CombinedTasks(tasks)
    assert combined.num_shared_blocks == NUM_LAYERS - ("parts" in options)
    ids = preprocessor(TEXTS[:3])
    for name, outputs in combined(ids).items():
        # bfloat16 has 8 bits.
        tolerance = 0.02 if "dtype" in options else TOLERANCE
        np.testing.assert_allclose(outputs, tasks[name](ids), atol=tolerance)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tasks, _: [tasks["mood"]], "`tasks` must be one task or more, by name"),
        (lambda tasks, _: {}, "`tasks` must be one task or more, by name"),
        (lambda tasks, _: {"a/b": tasks["mood"]}, "must have identifiers"),
        (lambda tasks, _: {3: tasks["mood"]}, "must have identifiers"),
        (lambda tasks, _: {"a": tasks["mood"], "a_b": tasks["topic"]}, "none of which begins with another"),
        (lambda tasks, make: {"a": make(BertMaskedLM)}, "must read single texts"),
        (lambda tasks, make: {"a": make(BertClassifier, 2, pairs=True)}, "must read single texts"),
        (lambda tasks, make: {"a": make(BertClassifier, 2, long_texts="windows")}, "must read single texts"),
        (lambda tasks, make: {"a": make(BertClassifier, 2, preprocessor=None)}, "must read single texts"),
        (lambda tasks, _: {"a": 3}, "must read single texts"),
        (
            lambda tasks, make: {"a": make(BertSentenceEncoder, prompts={"q": "night "}, default_prompt="q")},
            "must read single texts",
        ),
        (lambda tasks, make: tasks | {"b": make(BertClassifier, 2, max_length=8)}, r"tasks\['b'\].*'max_length'"),
        (lambda tasks, make: tasks | {"b": make(BertTokenClassifier, TAGS, stride=1)}, r"tasks\['b'\].*'stride'"),
        (
            lambda _, make: {
                "a": make(BertTokenClassifier, TAGS, truncation_side="left"),
                "b": make(BertClassifier, 2, truncation_side="left"),
            },
            r"tasks\['b'\].*'truncation_side'",
        ),
    ],
)
def test_errors(change, message, tasks, new_backbone, tokenizer):
    def make(kind, *arguments, preprocessor=True, max_length=9, truncation_side="right", **options):
        reader = BertPreprocessor(tokenizer, max_length=max_length, truncation_side=truncation_side)
        return kind(new_backbone(), *arguments, preprocessor=reader if preprocessor else None, **options)

    with pytest.raises((ValueError, TypeError), match=message):
        CombinedTasks(change(tasks, make))


def test_it_is_not_trained(combined):
    with pytest.raises(AttributeError, match="`CombinedTasks` has no `fit`. Train"):
        combined.fit(TEXTS)
