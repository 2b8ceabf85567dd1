import json
import shutil

import h5py
import keras
import numpy as np
import pytest

from keras_bert_layers import (
    BertClassifier,
    BertCrossEncoder,
    BertMaskedLM,
    BertSentenceEncoder,
    load_backbone,
    load_preprocessor,
    load_task,
    load_tokenizer,
)
from keras_bert_layers.checkpoints import CheckpointError, load_report
from keras_bert_layers.checkpoints.kerashub.directory import KerasHubDirectory

# float32 sums in another order: one product for query, key and value against three.
OUTPUT_TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def models(kerashub):
    """A model of each kind."""
    return {kind: getattr(kerashub, kind)() for kind in ("backbone", "classifier", "masked_lm", "text_embedder")}


@pytest.fixture(scope="module")
def presets(models, kerashub, tmp_path_factory):
    """What KerasHub writes of them."""
    root = tmp_path_factory.mktemp("presets")
    return {kind: kerashub.save(model, root / kind) for kind, model in models.items()}


@pytest.fixture
def preset(presets, tmp_path):
    """A copy of the classifier's preset, whose files a test changes."""
    return shutil.copytree(presets["classifier"], tmp_path / "preset")


def change_json(path, *keys, value=None, remove=False):
    """Changes or removes an entry of a JSON file."""
    values = json.loads(path.read_text(encoding="utf-8"))
    place = values
    for key in keys[:-1]:
        place = place[key]
    if remove:
        del place[keys[-1]]
    else:
        place[keys[-1]] = value
    path.write_text(json.dumps(values), encoding="utf-8")


def change_weights(path, name, tensor=None):
    """Changes a tensor of a file, adds it, or takes it away."""
    with h5py.File(path, "a") as file:
        if name in file:
            del file[name]
        if tensor is not None:
            file[name] = tensor


def assert_equal_outputs(theirs, ours, inputs, kerashub):
    there, here = kerashub.outputs(theirs, inputs), kerashub.outputs(ours, inputs)
    keras.tree.map_structure(
        lambda one, other: np.testing.assert_allclose(one, other, atol=OUTPUT_TOLERANCE, rtol=0), there, here
    )


def test_backbone(models, presets, kerashub):
    backbone = load_backbone(presets["backbone"])
    config = backbone.config
    assert (config.activation, config.layer_norm_epsilon) == ("gelu_tanh", 1e-12)
    assert (config.dropout, config.attention_dropout) == (0.2, 0.2)
    assert (config.max_sequence_length, config.num_segments) == (17, 4)
    assert_equal_outputs(models["backbone"], backbone, kerashub.ids(), kerashub)
    report = load_report(backbone)
    assert len(report.loaded) == len(backbone.weights) + 2 * 2 * config.num_layers  # three weights are one here
    assert (report.fresh, report.ignored) == ((), {})
    assert "model.weights.h5/layers/dense/vars/1" in report.loaded


def test_weights_bit_for_bit(models, presets, kerashub):
    theirs, ours = kerashub.weights(models["backbone"]), load_backbone(presets["backbone"])
    block, layer = "encoder_block_1", "transformer_layer_1"
    parts = [
        theirs[f"{layer}/self_attention_layer/{part}/kernel"].reshape(15, 15) for part in ("query", "key", "value")
    ]
    expected = {
        "embedding/position_embedding": theirs["position_embedding/embeddings"],
        f"{block}/attention/query_key_value/kernel": np.concatenate(parts, axis=1),
        f"{block}/attention/output/kernel": theirs[f"{layer}/self_attention_layer/attention_output/kernel"].reshape(
            15, 15
        ),
        f"{block}/feed_forward_layer_norm/beta": theirs[f"{layer}/feedforward_layer_norm/beta"],
        "pooler/dense/kernel": theirs["pooled_dense/kernel"],
    }
    weights = {weight.path: keras.ops.convert_to_numpy(weight) for weight in ours.weights}
    for end, value in expected.items():
        (path,) = (path for path in weights if path.endswith(end))
        np.testing.assert_array_equal(weights[path], value, err_msg=end)


def test_classifier(models, presets, kerashub):
    task = load_task(presets["classifier"])
    assert isinstance(task, BertClassifier)
    assert (task.num_classes, task.dropout, task.problem_type) == (6, 0.3, "single_label_classification")
    assert_equal_outputs(models["classifier"], task, kerashub.ids(), kerashub)
    assert task.preprocessor.max_length == kerashub.LENGTH
    padded, ids = models["classifier"].preprocessor(kerashub.TEXTS), task.preprocessor(kerashub.TEXTS)
    for name, theirs in padded.items():
        length = ids[name].shape[-1]
        np.testing.assert_array_equal(theirs[:, :length], ids[name])
        assert not np.any(theirs[:, length:])
    assert set(load_report(task).ignored.values()) == {"the optimizer's state"}


def test_masked_lm_has_two_gelus_and_two_epsilons(models, presets, kerashub):
    task = load_task(presets["masked_lm"])
    assert isinstance(task, BertMaskedLM)
    head = task.get_layer("masked_lm_head")
    assert (head.activation, head.layer_norm_epsilon) == ("gelu_erf", 1e-5)
    assert task.backbone.config.activation == "gelu_tanh"
    inputs = {**kerashub.ids(), "mask_positions": np.array([[1, 3], [0, 2], [5, 4]], "int32")}
    assert_equal_outputs(models["masked_lm"], task, inputs, kerashub)


def test_sentence_encoder(models, presets, kerashub):
    task = load_task(presets["text_embedder"])
    assert isinstance(task, BertSentenceEncoder)
    assert (task.pooling, task.normalize) == ("max", False)
    assert_equal_outputs(models["text_embedder"], task, kerashub.ids(), kerashub)


def test_encoder_of_a_task(models, presets, kerashub):
    backbone = load_backbone(presets["masked_lm"])
    assert_equal_outputs(models["masked_lm"].backbone, backbone, kerashub.ids(), kerashub)
    assert set(load_report(backbone).ignored.values()) == {"a masked language model's head", "the optimizer's state"}


def test_another_task_on_the_encoder(presets):
    task = load_task(presets["masked_lm"], task="classifier", num_classes=2, preprocessor=None)
    assert load_report(task).fresh == ("classification_head/dense/kernel", "classification_head/dense/bias")


def test_the_encoder_states_no_task(presets):
    with pytest.raises(CheckpointError, match=r"backbone does not state its task"):
        load_task(presets["backbone"])


def test_after_training(kerashub, tmp_path):
    model = kerashub.classifier(num_classes=2, activation="softmax")
    model.optimizer.build(model.trainable_variables)  # as the first step of training does
    task = load_task(kerashub.save(model, tmp_path / "trained"))
    logits = kerashub.outputs(task, kerashub.ids())
    probabilities = kerashub.outputs(model, kerashub.ids())
    np.testing.assert_allclose(keras.ops.softmax(logits), probabilities, atol=OUTPUT_TOLERANCE, rtol=0)
    assert len(load_report(task).ignored) == 2 + 2 * len(model.trainable_variables)


def test_half_precision(kerashub, tmp_path):
    model = kerashub.backbone(dtype="bfloat16")
    backbone = load_backbone(kerashub.save(model, tmp_path / "half"))
    theirs = kerashub.weights(model)["pooled_dense/kernel"].astype("float32")
    (ours,) = (weight for weight in backbone.weights if weight.path.endswith("pooler/dense/kernel"))
    np.testing.assert_array_equal(ours, theirs)


def test_quantised(preset):
    change_weights(preset / "model.weights.h5", "layers/dense/vars/0", np.ones((15, 15), "int8"))
    with pytest.raises(CheckpointError, match=r"layers/dense/vars/0' must hold floats, .*Received: I8\. Quantised"):
        load_backbone(preset)
    change_json(preset / "config.json", "config", "dtype", value={"class_name": "DTypePolicyMap", "config": {}})
    with pytest.raises(CheckpointError, match=r"config\.json: .*`dtype` must be a DTypePolicy.*Quantised weights"):
        load_backbone(preset)


class TestTokenizer:
    def test_ids(self, presets, kerashub):
        ids = load_tokenizer(presets["backbone"]).tokenize(kerashub.TEXTS)
        assert ids.to_list() == [np.asarray(kerashub.tokenizer()(text)).tolist() for text in kerashub.TEXTS]

    def test_preprocessor(self, presets, kerashub):
        assert load_preprocessor(presets["classifier"]).max_length == kerashub.LENGTH
        assert load_preprocessor(presets["backbone"]).max_length == 17  # not stated: KerasHub's 512, or the positions

    def test_accents_are_taken_off_where_no_token_has_one(self, presets, kerashub):
        tokenizer = load_tokenizer(presets["backbone"])
        assert (tokenizer.lowercase, tokenizer.strip_accents, tokenizer.reference) == (True, True, "google")
        assert tokenizer.tokenize(["Bád FILM"]).to_list() == tokenizer.tokenize(["bad film"]).to_list()
        assert kerashub.VOCABULARY.index("[UNK]") in np.asarray(kerashub.tokenizer()("Bád FILM"))

    def test_missing(self, preset):
        (preset / "tokenizer.json").unlink()
        with pytest.raises(
            CheckpointError, match=r"`load_tokenizer`: .* must hold tokenizer\.json\. Found: .*A preset has a"
        ):
            load_tokenizer(preset)

    def test_no_vocabulary(self, preset):
        shutil.rmtree(preset / "assets")
        with pytest.raises(CheckpointError, match=r"must hold assets/tokenizer/vocabulary\.txt"):
            load_task(preset)

    def test_broken_vocabulary(self, preset):
        (preset / "assets/tokenizer/vocabulary.txt").write_text("a\na\n")
        with pytest.raises(CheckpointError, match=r"vocabulary\.txt: `BertTokenizer`: `vocabulary` must hold \[PAD\]"):
            load_tokenizer(preset)

    def test_more_tokens_than_embeddings(self, preset, kerashub):
        tokens = [*kerashub.VOCABULARY, *"bcdefghi"]
        (preset / "assets/tokenizer/vocabulary.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
        with pytest.raises(
            CheckpointError, match=r"more tokens than config\.json's vocabulary_size of 23\. .*: 24 tokens"
        ):
            load_tokenizer(preset)


@pytest.mark.parametrize("value", [2, True, "13", None])
def test_invalid_length(preset, value):
    change_json(preset / "preprocessor.json", "config", "sequence_length", value=value)
    with pytest.raises(
        CheckpointError, match=r"preprocessor\.json: `sequence_length` must be an integer of at least 3"
    ):
        load_preprocessor(preset)


class TestBadFiles:
    def test_no_weights(self, preset):
        (preset / "model.weights.h5").unlink()
        with pytest.raises(
            CheckpointError, match=r"`load_backbone`: .* must hold model\.weights\.h5\. Found: assets, con"
        ):
            load_backbone(preset)

    @pytest.mark.parametrize("name", ["model.weights.h5", "task.weights.h5"])
    def test_truncated_weights(self, preset, name):
        path = preset / name
        path.write_bytes(path.read_bytes()[:-200])
        with pytest.raises(CheckpointError, match=rf"{name}: not a complete HDF5 file: .*truncated"):
            load_task(preset)

    def test_no_head(self, preset):
        (preset / "task.weights.h5").unlink()
        with pytest.raises(CheckpointError, match=r"the model needs 2 tensors .* lacks: logits/kernel, logits/bias"):
            load_task(preset)

    def test_missing_tensor(self, preset):
        change_weights(preset / "model.weights.h5", "layers/dense/vars/1")
        with pytest.raises(CheckpointError, match=r"needs 1 tensors that the weights file lacks: pooled_dense/bias"):
            load_backbone(preset)

    def test_unexpected_tensor(self, preset):
        change_weights(preset / "model.weights.h5", "layers/adapter/vars/0", np.ones(3, "float32"))
        with pytest.raises(
            CheckpointError, match=r"holds 1 tensors .*no weight for: model\.weights\.h5/layers/adapter/va"
        ):
            load_backbone(preset)

    def test_more_layers_than_the_config_states(self, preset):
        change_json(preset / "config.json", "config", "num_layers", value=1)
        with pytest.raises(CheckpointError, match=r"holds 16 tensors that .*no weight for: .*/transformer_encoder_1/"):
            load_backbone(preset)

    def test_heads_that_the_config_does_not_state(self, preset):
        change_json(preset / "config.json", "config", "num_heads", value=5)
        with pytest.raises(
            CheckpointError, match=r"query_dense/vars/0' must have shape \(15, 5, 3\)\..*shape=\(15, 3, 5\)"
        ):
            load_backbone(preset)

    def test_numbers_that_are_not_finite(self, preset):
        change_weights(preset / "model.weights.h5", "layers/dense/vars/1", np.full(15, np.nan, "float32"))
        with pytest.raises(CheckpointError, match=r"'model\.weights\.h5/layers/dense/vars/1' holds NaN or infinity"):
            load_backbone(preset)

    def test_another_model(self, preset):
        change_json(preset / "config.json", "class_name", value="RobertaBackbone")
        with pytest.raises(CheckpointError, match=r"config\.json: .*`class_name` must be 'BertBackbone'"):
            load_backbone(preset)

    def test_unknown_argument(self, preset):
        change_json(preset / "config.json", "config", "rotary", value=True)
        with pytest.raises(CheckpointError, match=r"config\.json: .*every key must be known\. Received: rotary=True"):
            load_backbone(preset)

    def test_broken_json(self, preset):
        (preset / "config.json").write_text("{")
        with pytest.raises(CheckpointError, match=r"config\.json: must be valid JSON"):
            load_backbone(preset)


def test_a_task_that_is_not_known(preset, models, kerashub):
    change_json(preset / "task.json", "class_name", value="MyTagger")
    change_weights(preset / "task.weights.h5", "layers/tagger/vars/0", np.ones(3, "float32"))
    with pytest.raises(CheckpointError, match="does not state its task"):
        load_task(preset)
    backbone = load_backbone(preset)
    assert_equal_outputs(models["classifier"].backbone, backbone, kerashub.ids(), kerashub)
    assert load_report(backbone).ignored["task.weights.h5/layers/tagger/vars/0"] == "the head of a MyTagger"


def test_one_number_with_a_sigmoid(kerashub, tmp_path):
    model = kerashub.classifier(num_classes=1, activation="sigmoid")
    task = load_task(kerashub.save(model, tmp_path / "score"))
    assert isinstance(task, BertCrossEncoder)
    scores = keras.ops.sigmoid(kerashub.outputs(task, kerashub.ids()))
    np.testing.assert_allclose(scores, kerashub.outputs(model, kerashub.ids()), atol=OUTPUT_TOLERANCE, rtol=0)


def test_which_directories_are_presets(presets, checkpoint, tmp_path):
    assert KerasHubDirectory.describes(presets["backbone"])
    assert not KerasHubDirectory.describes(checkpoint)
    assert not KerasHubDirectory.describes(tmp_path)
