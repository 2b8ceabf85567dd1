"""Heads in the weights that the config does not state, or states wrongly: each loads as transformers computes it."""

import functools
import json
import shutil

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert_layers import load_backbone, load_task, save_huggingface
from keras_bert_layers.checkpoints import CheckpointError, load_report

ABSENT = object()
MLM, BOTH = "BertForMaskedLM", "BertForPreTraining"
SEQUENCE, TOKENS, CHOICES = "BertForSequenceClassification", "BertForTokenClassification", "BertForMultipleChoice"

# Kind of `our_models` that is written -> the changes of its config, and the task that is asked for.
LOADS = {
    "no architectures": ("masked_lm", {"architectures": ABSENT}, "masked_lm"),
    "no architectures, one head": ("masked_lm", {"architectures": ABSENT}, None),
    "architectures of null": ("question_answerer", {"architectures": None}, None),
    "custom class": ("masked_lm", {"architectures": ["AntiBERTy"]}, None),
    "TensorFlow's class": ("classifier", {"architectures": ["TFBertForSequenceClassification"]}, None),
    "two names, one head": ("classifier", {"architectures": [SEQUENCE, MLM]}, None),
    "decoder's class of an encoder": ("masked_lm", {"architectures": ["BertLMHeadModel"], "is_decoder": False}, None),
    "encoder's class": ("masked_lm", {"architectures": ["BertModel"]}, "masked_lm"),
    "pretrained as masked": ("pretrainer", {"architectures": [MLM]}, "pretrainer"),
    "classifier by its name": ("classifier", {"architectures": ABSENT}, "classifier"),
    "tags by their name": ("token_classifier", {"architectures": ["MyTagger"]}, "token_classifier"),
    "tags without a pooler": ("token_classifier", {"architectures": ["MyTagger"]}, None),
    "choices by their name": ("multiple_choice", {"architectures": ABSENT}, "multiple_choice"),
    "regression by its name": ("regression", {"architectures": ABSENT}, "classifier"),
    "cross-encoder by its name": ("cross_encoder", {"architectures": ABSENT}, "cross_encoder"),
}


@pytest.fixture(scope="module")
def models(our_models):
    """`models(kind)`: a model of `our_models`, made once; no test changes it."""
    return functools.cache(our_models.make)


@pytest.fixture(scope="module")
def saved(models, tmp_path_factory):
    """`saved(kind)`: the directory of such a model, written once."""
    return functools.cache(lambda kind: save_huggingface(models(kind), tmp_path_factory.mktemp("saved") / kind))


@pytest.fixture
def written(saved, tmp_path):
    """`written(kind)`: a copy of that directory, for a test to change."""
    return lambda kind: shutil.copytree(saved(kind), tmp_path / "x")


def edited(directory, **changes):
    """Changes keys of a checkpoint's config; ABSENT takes one away."""
    path = directory / "config.json"
    values = {**json.loads(path.read_text("utf-8")), **changes}
    path.write_text(json.dumps({key: value for key, value in values.items() if value is not ABSENT}), "utf-8")
    return directory


def with_tensors(directory, **changes):
    """Changes tensors; None takes one away."""
    path = directory / "model.safetensors"
    tensors = {**load_file(path), **{name.replace("__", "."): tensor for name, tensor in changes.items()}}
    save_file({name: tensor for name, tensor in tensors.items() if tensor is not None}, path)
    return directory


def assert_equal_weights(one, other):
    assert len(one.weights) == len(other.weights)
    for first, second in zip(one.weights, other.weights, strict=True):
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(first), keras.ops.convert_to_numpy(second))


@pytest.mark.parametrize("case", LOADS)
def test_the_stored_head_is_read(models, written, case):
    kind, changes, task = LOADS[case]
    ours = models(kind)
    directory = edited(written(kind), **changes)
    again = load_task(directory, task, preprocessor=None)
    assert type(again) is type(ours)
    report = load_report(again)
    assert not [path for path in report.newly_initialized if "head" in path]
    known = {id(weight) for weight in again.backbone.get_layer("pooler").weights}
    pairs = [(mine, theirs) for mine, theirs in zip(again.weights, ours.weights, strict=True) if id(mine) not in known]
    for mine, theirs in pairs:
        np.testing.assert_array_equal(mine.numpy(), theirs.numpy(), err_msg=mine.path)
    stated = changes["architectures"] not in (ABSENT, None) and case not in (
        *("custom class", "encoder's class", "tags by their name", "tags without a pooler"),
        "pretrained as masked",
    )
    stated |= kind == "cross_encoder"  # by the files of sentence-transformers
    assert bool(report.notes) != stated


@pytest.mark.parametrize(
    ("kind", "tasks"),
    [
        ("pretrainer", ["pretrainer", "masked_lm"]),
        ("classifier", ["classifier", "token_classifier"]),
        ("regression", ["classifier", "cross_encoder", "multiple_choice"]),
    ],
)
def test_several_tasks_are_named_with_the_calls_to_write(written, kind, tasks):
    directory = edited(written(kind), architectures=ABSENT)
    calls = " or ".join(f"`load_task('{directory}', task='{task}')`" for task in tasks)
    with pytest.raises(CheckpointError) as error:
        load_task(directory)
    assert str(error.value).endswith(f"does not state its task, and its weights fit {len(tasks)}. Write {calls}.")


def test_what_a_classifier_classifies_is_what_the_config_states(written):
    """The tensors are the same; a user who asks for another task wants a new head."""
    directory = written("classifier")
    with pytest.warns(UserWarning, match="the trained head of a BertClassifier, which is not used"):
        task = load_task(directory, "token_classifier", tag_names=["O", "B-x", "I-x"], preprocessor=None)
    assert "token_classification_head/dense/kernel" in load_report(task).newly_initialized


def test_a_pretrained_encoder_gets_a_new_classifier(written):
    """And not the head for the next sentence, which is one of two classes too."""
    directory = written("pretrainer")
    task = load_task(directory, "classifier", num_classes=2, preprocessor=None)
    assert "classification_head/dense/kernel" in load_report(task).newly_initialized


@pytest.mark.parametrize("names", [None, ["valence", "arousal", "dominance"]])
def test_regression_of_several_numbers(our_models, tmp_path, names):
    from keras_bert_layers import BertBackbone, BertClassifier

    model = BertClassifier(BertBackbone(our_models.CONFIG), 3, class_names=names, problem_type="regression")
    again = load_task(save_huggingface(our_models.randomised(model), tmp_path / "x"), preprocessor=None)
    assert (again.problem_type, again.num_classes) == ("regression", 3)
    assert again.class_names == (names or ["LABEL_0", "LABEL_1", "LABEL_2"])
    assert_equal_weights(again, model)


def test_sizes_are_those_of_the_weights(written):
    directory = written("unnamed_classifier")
    for changes, first in (
        ({"id2label": ABSENT, "label2id": ABSENT}, "LABEL_0"),
        ({"id2label": None, "num_labels": 3}, "LABEL_0"),
        ({"id2label": ["a", "b", "c", "d", "e"], "num_labels": ABSENT}, "a"),
    ):
        task = load_task(edited(directory, **changes), preprocessor=None)
        assert (task.num_classes, task.class_names[0]) == (5, first)
    edited(directory, id2label={"1": "a", "2": "b"})
    with pytest.warns(UserWarning, match=r"`id2label` must give each of the head's 5 outputs its own label"):
        task = load_task(directory, preprocessor=None)
    assert task.class_names == ["LABEL_0", "a", "b", "LABEL_3", "LABEL_4"]
    assert "LABEL_3" in load_report(task).notes[0]
    assert load_task(directory, class_names=list("vwxyz"), preprocessor=None).class_names == list("vwxyz")


@pytest.mark.parametrize("kind", ["masked_lm", "pretrainer"])
def test_a_decoder_of_its_own(our_models, tmp_path, kind):
    """It is read, computed with, saved in both formats and read again."""
    from keras_bert_layers import BertBackbone, BertMaskedLM, BertPretrainer

    task = {"masked_lm": BertMaskedLM, "pretrainer": BertPretrainer}[kind]
    model = our_models.randomised(task(BertBackbone(our_models.CONFIG), tie_weights=False))
    directory = save_huggingface(model, tmp_path / "x")
    values = json.loads((directory / "config.json").read_text("utf-8"))
    assert values["tie_word_embeddings"] is False
    for changes in ({}, {"tie_word_embeddings": ABSENT}):
        again = load_task(edited(directory, **changes), preprocessor=None)
        assert (again.tie_weights, load_report(again).newly_initialized[2:]) == (False, ())
        np.testing.assert_array_equal(
            again.get_layer("masked_lm_head").decoder.numpy(), model.get_layer("masked_lm_head").decoder.numpy()
        )
    model.save(tmp_path / "x.keras")
    assert_equal_weights(keras.models.load_model(tmp_path / "x.keras"), model)


def test_an_untied_decoder_that_is_not_there(written):
    directory = edited(written("masked_lm"), tie_word_embeddings=False)
    with pytest.raises(CheckpointError, match=r"needs 1 tensors .* lacks: cls\.predictions\.decoder\.weight"):
        load_task(directory)


def test_dialects_without_an_untied_decoder(our_models, tmp_path):
    from keras_bert_layers import BertBackbone, BertMaskedLM, save_google

    model = BertMaskedLM(BertBackbone(our_models.CONFIG), our_models.preprocessor(), tie_weights=False)
    with pytest.raises(ValueError, match=r"The layout has no such weight: masked_lm_head/decoder"):
        save_google(model, tmp_path / "x")


def test_a_trained_head_needs_the_pooler_that_it_reads(written):
    directory = written("classifier")
    with_tensors(directory, bert__pooler__dense__weight=None, bert__pooler__dense__bias=None)
    with pytest.raises(CheckpointError, match=r"reads the pooled output, and the weights file lacks the pooler"):
        load_task(directory)
    edited(directory, architectures=ABSENT)
    with pytest.raises(CheckpointError, match=r"would read the pooled output, and the weights lack the pooler"):
        load_task(directory, "classifier")
    task = load_task(directory, "token_classifier", tag_names=["O", "B-x", "I-x"])
    assert load_report(task).newly_initialized == ("pooler/dense/kernel", "pooler/dense/bias")


@pytest.mark.parametrize("task", [None, "classifier"])
def test_a_head_of_two_layers_is_named_with_the_line_that_adds_it(written, task):
    directory = written("classifier")
    layers = {"classifier__dense": (15, 15), "classifier__out_proj": (3, 15)}
    tensors = {f"{name}__weight": np.ones(shape, "float32") for name, shape in layers.items()}
    tensors |= {f"{name}__bias": np.ones(shape[:1], "float32") for name, shape in layers.items()}
    with_tensors(directory, classifier__weight=None, classifier__bias=None, **tensors)
    with pytest.raises(CheckpointError, match=r"not a BertClassifier's: classifier\.dense\.bias \(15,\)") as error:
        load_task(directory, task)
    line = next(part for part in str(error.value).split("`") if part.startswith("keras.Model("))
    model = eval(line, {"keras": keras, "backbone": load_backbone(directory)})  # the line that the error gives
    assert model.output.shape == (None, 3)


@pytest.mark.parametrize(
    ("task", "options", "tensors", "text"),
    [
        ("classifier", {"num_classes": 3}, {"classifier__weight": (3, 30), "classifier__bias": (3,)}, r"not a BertCla"),
        ("masked_lm", {}, {"lm_head__bias": (23,)}, r"not a BertMaskedLM's: lm_head\.bias.* It lacks cls\.predictions"),
        ("question_answerer", {}, {"qa_outputs__weight": (2, 15)}, r"It lacks qa_outputs\.bias\. To train a new head"),
        ("pretrainer", {}, {"cls__predictions__bias": (23,)}, r"It lacks cls\.predictions\.transform\.dense\.weight"),
    ],
)
def test_a_stored_head_of_another_kind_is_not_thrown_away(checkpoint, task, options, tensors, text):
    with_tensors(checkpoint, **{name: np.ones(shape, "float32") for name, shape in tensors.items()})
    with pytest.raises(CheckpointError, match=text):
        load_task(checkpoint, task, **options)


def test_a_conditional_random_field_is_warned_of(written):
    directory = written("token_classifier")
    with_tensors(directory, crf__transitions=np.ones((4, 4), "float32"))
    text = r"the conditional random field `crf` is not read; tags are of logits alone"
    with pytest.warns(UserWarning, match=text):
        task = load_task(directory)
    assert load_report(task).ignored == {"crf.transitions": "a conditional random field over the tags"}
    with pytest.warns(UserWarning, match=text):  # names of one's own leave no doubt about names, but this is another
        load_task(directory, tag_names=task.tag_names, preprocessor=None)


def test_labels_of_the_config_for_a_new_head(checkpoint, huggingface):
    edited(checkpoint, id2label={"0": "x", "1": "y", "2": "z"})
    assert load_task(checkpoint, "classifier", preprocessor=None).class_names == ["x", "y", "z"]
    assert load_task(checkpoint, "classifier", num_classes=2, preprocessor=None).class_names is None
    edited(checkpoint, architectures=[TOKENS])
    with pytest.raises(ValueError, match="`num_classes` must be given"):
        load_task(checkpoint, "classifier")


def test_another_model_is_named_first(checkpoint):
    edited(checkpoint, model_type="big_bird", architectures=["BigBirdForMaskedLM"])
    with pytest.raises(CheckpointError, match=r"config\.json: .*`model_type` must be one of.*'big_bird'"):
        load_task(checkpoint)


class TestWhatIsNotPartOfTheEncoder:
    def test_known_keys_and_tensors_are_lines_in_the_report(self, checkpoint):
        edited(checkpoint, emb_size=312, language="de", rnn_dim=4)
        names = ("fit_dense.weight", "loss_fct.weight", "logit_scale", "lm_head.decoder.weight", "crf.transitions")
        with_tensors(checkpoint, **{name: np.ones(3, "float32") for name in names})
        report = load_report(load_backbone(checkpoint, strict=True))
        assert (set(report.ignored), set(report.ignored_keys)) == (set(names), {"emb_size", "language", "rnn_dim"})
        assert "ignored in the config: emb_size (of TinyBERT's distillation)" in str(report)

    def test_unknown_ones_are_warned_of_together(self, checkpoint):
        edited(checkpoint, my_key=1, other_key=2)
        with_tensors(checkpoint, mlp__dense__weight=np.ones((3, 3), "float32"))
        words = "my_key, other_key, mlp.dense.weight"
        for load in (load_backbone, lambda source, **options: load_task(source, "sentence_encoder", **options)):
            with pytest.warns(UserWarning, match=rf"every weight of the model was found, and these.*: {words}\. If"):
                load(checkpoint)
            with pytest.raises(CheckpointError, match=rf"strict=True allows no unknown.*Received: {words}\. If"):
                load(checkpoint, strict=True)

    @pytest.mark.parametrize(
        "name",
        [
            "encoder.layer.0.adapter.down.weight",
            "encoder.layer.1.attention.self.distance_embedding.weight",
            "encoder.layer.0.attention.self.query.lora_A.weight",
            "encoder.layer.2.output.dense.bias",
            "embeddings.embedding_hidden_mapping_in.weight",
            "pooler.norm.weight",
            "bert.invertible_adapters.weight",
            "prompt_encoder.weight",
            "classifier.lora_A.weight",
        ],
    )
    def test_what_could_change_the_encoder_is_an_error(self, checkpoint, name):
        with_tensors(checkpoint, **{name: np.ones(3, "float32")})
        with pytest.raises(CheckpointError, match=rf"no weight for: {name}\. Without them its outputs would differ"):
            load_backbone(checkpoint)


@pytest.mark.filterwarnings("ignore:.*its head, .*, is new")
def test_a_pair_for_an_encoder_of_one_segment(checkpoint, huggingface):
    config = {**huggingface.CONFIG, "type_vocab_size": 1}
    huggingface.write(checkpoint, config=config, tensors=huggingface.random_tensors(config))
    task = load_task(checkpoint, "classifier", num_classes=2)
    assert task.predict(["a good film"], verbose=0).shape == (1, 2)
    pairs = ["a good film"], ["bad"]
    text = r"`segment_ids` must be 0, as the encoder has one segment .*Give single texts"
    for call in (lambda: task.predict(pairs, verbose=0), lambda: task.backbone(task.preprocessor(pairs))):
        with pytest.raises(Exception, match=text):
            call()
