import json
import warnings

import keras
import numpy as np
import pytest

from keras_bert_layers import (
    BertBackbone,
    BertClassifier,
    BertConfig,
    BertCrossEncoder,
    BertMaskedLM,
    BertPreprocessor,
    BertPretrainer,
    BertSentenceEncoder,
    BertTokenizer,
    load_backbone,
    load_preprocessor,
    load_task,
    load_tokenizer,
)
from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.files.hdf5_file import Hdf5File
from keras_bert_layers.checkpoints.kerashub.writer import save_kerashub

# float32 sums in another order: one product for query, key and value against three.
OUTPUT_TOLERANCE = 1e-5
# What KerasHub has no setting for, in three numbers and a name.
OTHER = {"activation": "gelu_erf", "layer_norm_epsilon": 1e-7, "attention_dropout": 0.1, "initializer_range": 0.3}


@pytest.fixture(scope="module")
def make(kerashub):
    """Our models of the sizes of KerasHub's."""
    tokenizer = BertTokenizer(kerashub.VOCABULARY)
    preprocessor = BertPreprocessor(tokenizer, max_length=kerashub.LENGTH)

    def backbone(**changes):
        sizes = {**kerashub.SIZES, "attention_dropout": 0.2, "activation": "gelu_tanh", **changes}
        return kerashub.randomised(BertBackbone(BertConfig(**sizes)))

    def task(kind, *, changes=None, with_preprocessor=True, **options):
        options["preprocessor"] = preprocessor if with_preprocessor else None
        return kerashub.randomised(kind(backbone(**(changes or {})), **options))

    task.backbone, task.preprocessor = backbone, preprocessor
    return task


KERASHUB_HEAD = {"head_activation": "gelu_erf", "head_layer_norm_epsilon": 1e-5}
KINDS = {
    "BertTextClassifier": (BertClassifier, {"class_names": ["bad", "fair", "good"], "dropout": 0.4}),
    "BertMaskedLM": (BertMaskedLM, KERASHUB_HEAD),
    "BertTextEmbedder": (BertSentenceEncoder, {"pooling": "cls", "normalize": False}),
}


def weights(model):
    return [keras.ops.convert_to_numpy(weight) for weight in model.weights]


def assert_equal_weights(one, other):
    assert [weight.path.split("/")[-3:] for weight in one.weights] == [
        weight.path.split("/")[-3:] for weight in other.weights
    ]
    for first, second in zip(weights(one), weights(other), strict=True):
        np.testing.assert_array_equal(first, second)


def assert_equal_outputs(one, other, inputs, kerashub):
    keras.tree.map_structure(
        lambda first, second: np.testing.assert_allclose(first, second, atol=OUTPUT_TOLERANCE, rtol=0),
        kerashub.outputs(one, inputs),
        kerashub.outputs(other, inputs),
    )


def inputs_of(model, kerashub):
    positions = {"mask_positions": np.array([[1, 3], [0, 2], [5, 4]], "int32")} if len(model.inputs) == 4 else {}
    return {**kerashub.ids(), **positions}


class TestKerasHubReadsIt:
    def test_backbone(self, make, kerashub, tmp_path):
        backbone = make.backbone()
        directory = save_kerashub(backbone, tmp_path / "preset", preprocessor=make.preprocessor)
        theirs = kerashub.load("BertBackbone", directory)
        stored = kerashub.stored(directory)
        assert len(stored) == len(kerashub.weights(theirs))
        assert_equal_outputs(theirs, backbone, kerashub.ids(), kerashub)
        assert theirs.get_config()["dropout"] == 0.2

    @pytest.mark.parametrize("name", KINDS)
    def test_task(self, name, make, kerashub, tmp_path):
        kind, options = KINDS[name]
        ours = make(kind, **options)
        theirs = kerashub.load(name, save_kerashub(ours, tmp_path / "preset"))
        assert_equal_outputs(theirs, ours, inputs_of(ours, kerashub), kerashub)
        ids = theirs.preprocessor(kerashub.TEXTS)
        ids = ids[0] if isinstance(ids, tuple) else ids
        assert ids["token_ids"].shape[-1] == kerashub.LENGTH
        if name != "BertMaskedLM":  # which hides some
            lengths = make.preprocessor(kerashub.TEXTS)["token_ids"].shape[-1]
            np.testing.assert_array_equal(ids["token_ids"][:, :lengths], make.preprocessor(kerashub.TEXTS)["token_ids"])

    def test_it_writes_what_kerashub_writes(self, make, kerashub, tmp_path):
        theirs = kerashub.classifier()
        kerashub.save(theirs, tmp_path / "theirs")
        ours = load_task(tmp_path / "theirs")
        save_kerashub(ours, tmp_path / "ours")
        expected, found = kerashub.stored(tmp_path / "theirs"), kerashub.stored(tmp_path / "ours")
        assert expected.keys() == found.keys()
        for name, tensor in expected.items():
            assert tensor.dtype == found[name].dtype
            np.testing.assert_array_equal(tensor, found[name], err_msg=name)
        assert {path.name for path in (tmp_path / "theirs").iterdir()} == {
            path.name for path in (tmp_path / "ours").iterdir()
        }

    def test_preprocessors_alone(self, make, kerashub, tmp_path):
        directory = save_kerashub(make.backbone(), tmp_path / "preset", preprocessor=make.preprocessor)
        assert kerashub.load("BertTokenizer", directory).get_vocabulary() == kerashub.VOCABULARY
        assert kerashub.load("BertTextClassifierPreprocessor", directory).sequence_length == kerashub.LENGTH
        fresh = kerashub.load("BertTextClassifier", directory, num_classes=2)
        assert fresh.preprocessor.sequence_length == kerashub.LENGTH

    def test_without_preprocessor(self, make, kerashub, tmp_path):
        directory = save_kerashub(make(BertClassifier, num_classes=2, with_preprocessor=False), tmp_path / "preset")
        assert kerashub.load("BertTextClassifier", directory).preprocessor is None
        assert sorted(path.name for path in directory.iterdir()) == [
            *("config.json", "metadata.json", "model.weights.h5", "task.json", "task.weights.h5")
        ]


class TestRoundTrip:
    def test_backbone_with_all_that_kerashub_cannot_express(self, make, tmp_path):
        backbone = make.backbone(**OTHER)
        with pytest.warns(UserWarning, match="KerasHub has no setting for activation='gelu_erf'"):
            directory = save_kerashub(backbone, tmp_path / "preset")
        again = load_backbone(directory)
        assert again.config == backbone.config
        assert_equal_weights(again, backbone)

    @pytest.mark.parametrize(
        ("kind", "options"),
        [
            *KINDS.values(),
            (BertClassifier, {"problem_type": "regression"}),
            (BertClassifier, {"num_classes": 5, "problem_type": "multi_label_classification", "threshold": 0.3}),
            (BertClassifier, {"num_classes": 2, "pairs": True}),
            (BertCrossEncoder, {"dropout": 0.25}),
        ],
    )
    def test_task(self, kind, options, make, tmp_path):
        task = make(kind, **options)
        again = load_task(save_kerashub(task, tmp_path / "preset"))
        assert type(again) is kind
        for name in options:
            assert getattr(again, name) == getattr(task, name)
        assert_equal_weights(again, task)
        assert again.preprocessor.max_length == task.preprocessor.max_length
        assert again.preprocessor.tokenizer.get_config() == task.preprocessor.tokenizer.get_config()

    def test_a_masked_lm_head_of_our_own(self, make, tmp_path):
        task = make(BertMaskedLM)
        with pytest.warns(UserWarning, match=r"head_activation='gelu_tanh' \(there 'gelu_erf'\), head_layer_norm_eps"):
            directory = save_kerashub(task, tmp_path / "preset")
        head = load_task(directory).get_layer("masked_lm_head")
        assert (head.activation, head.layer_norm_epsilon) == ("gelu_tanh", 1e-12)

    @pytest.mark.parametrize("reference", ["google", "huggingface"])
    def test_tokenizer(self, reference, make, kerashub, tmp_path):
        tokenizer = BertTokenizer(
            [*kerashub.VOCABULARY, "é"], lowercase=True, strip_accents=False, split_chinese=False, reference=reference
        )
        preprocessor = BertPreprocessor(tokenizer, max_length=9, truncation="only_first")
        with pytest.warns(UserWarning, match=r"split_chinese=False \(there True\), truncation='only_first'"):
            directory = save_kerashub(make.backbone(), tmp_path / "preset", preprocessor=preprocessor)
        assert load_tokenizer(directory).get_config() == tokenizer.get_config()
        assert load_preprocessor(directory).max_length == 9

    def test_tokens_that_end_in_whitespace(self, make, kerashub, tmp_path):
        tokenizer = BertTokenizer([*kerashub.VOCABULARY, "\u2028", "\u3000"])
        with pytest.warns(UserWarning, match=r"tokens that end in whitespace=\['.u2028', '.u3000'\] \(there \[\]\)"):
            directory = save_kerashub(
                make.backbone(), tmp_path / "preset", preprocessor=BertPreprocessor(tokenizer, max_length=9)
            )
        assert load_tokenizer(directory).get_config() == tokenizer.get_config()

    @pytest.mark.slow
    def test_minilm(self, minilm, kerashub, tmp_path):
        backbone = load_backbone(minilm)
        with pytest.warns(
            UserWarning, match=r"no setting for activation='gelu_erf' \(there 'gelu_tanh'\): it computes"
        ):
            directory = save_kerashub(backbone, tmp_path / "preset", preprocessor=load_preprocessor(minilm))
        again = load_backbone(directory)
        assert again.config == backbone.config
        assert_equal_weights(again, backbone)
        assert load_tokenizer(directory).get_config() == load_tokenizer(minilm).get_config()
        assert load_preprocessor(directory).max_length == 256


class TestMetadata:
    def test_kerashub_drops_it_with_the_weights_that_it_belongs_to(self, make, kerashub, tmp_path):
        with pytest.warns(UserWarning, match="no setting"):
            directory = save_kerashub(make.backbone(**OTHER), tmp_path / "preset")
        assert load_backbone(directory).config.activation == "gelu_erf"
        kerashub.load("BertBackbone", directory).save_to_preset(str(directory))
        config = load_backbone(directory).config
        assert (config.activation, config.layer_norm_epsilon, config.attention_dropout) == ("gelu_tanh", 1e-12, 0.2)

    @pytest.fixture
    def directory(self, make, tmp_path):
        return save_kerashub(make(BertClassifier, num_classes=2), tmp_path / "preset")

    @pytest.mark.parametrize(
        ("file", "keys", "value", "part"),
        [
            ("config.json", ("config", "dropout"), 0.5, "config"),
            ("tokenizer.json", ("config", "lowercase"), False, "tokenizer"),
            ("task.json", ("class_name",), "BertMaskedLM", "task"),
            ("metadata.json", ("keras_bert_layers", "config", "embedding_dim"), 4, "config"),
        ],
    )
    def test_files_that_were_changed_since(self, file, keys, value, part, directory):
        values = json.loads((directory / file).read_text())
        place = values
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value
        if file == "task.json":
            values["config"] = {}
        (directory / file).write_text(json.dumps(values))
        with pytest.raises(CheckpointError, match=rf"metadata\.json: the {part} under `keras_bert_layers` must"):
            load_task(directory)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [(BertCrossEncoder, {"activation": "tanh"}), (BertSentenceEncoder, {"pooling": "cls", "truncate_dim": 5})],
)
def test_prompts_and_what_belongs_to_them(make, tmp_path, kind, settings):
    settings = {**settings, "prompts": {"query": "query: "}, "default_prompt": "query"}
    with pytest.warns(UserWarning, match=r"KerasHub has no setting for .*default_prompt='query' \(there None\)"):
        directory = save_kerashub(make(kind, with_preprocessor=False, **settings), tmp_path / "preset")
    again = load_task(directory, preprocessor=None)
    assert {name: getattr(again, name) for name in settings} == settings


class TestErrors:
    def save(self, model, tmp_path, error, match, **options):
        with pytest.raises(error, match=match):
            save_kerashub(model, tmp_path / "preset", **options)
        assert not any(tmp_path.iterdir())

    def test_other_tasks(self, make, tmp_path):
        match = r"`save_kerashub`: `model` must be one of BertBackbone, .*no such task; save `model\.backbone`"
        self.save(make(BertPretrainer), tmp_path, TypeError, match)
        self.save(keras.Sequential(), tmp_path, TypeError, match)

    def test_other_functions(self, make, tmp_path):
        self.save(make.backbone(activation="relu"), tmp_path, ValueError, "`activation` must be a GELU for KerasHub")

    def test_narrow_embedding(self, make, tmp_path):
        self.save(make.backbone(embedding_dim=5), tmp_path, ValueError, "`embedding_dim` must be None for KerasHub")

    def test_dense_layer_behind_the_pooling(self, make, tmp_path):
        task = make(BertSentenceEncoder, projection_dim=4)
        self.save(task, tmp_path, ValueError, r"`model\.projection_dim` must be None\. .*no sentence encoder with a")

    def test_poolings(self, make, tmp_path):
        task = make(BertSentenceEncoder, pooling="lasttoken")
        self.save(task, tmp_path, ValueError, r"`model\.pooling` must be one of \['mean', 'cls', 'max'\]")

    def test_weights_beside_berts_own(self, make, tmp_path):
        task = make(BertClassifier, num_classes=2)
        task.add_weight(shape=(3,), name="more")
        self.save(task, tmp_path, ValueError, "`model` must have BERT's own weights and no others")

    def test_preprocessor(self, make, kerashub, tmp_path):
        backbone, tokenizer = make.backbone(), make.preprocessor.tokenizer
        self.save(backbone, tmp_path, TypeError, "`preprocessor` must be a BertPreprocessor", preprocessor=tokenizer)
        for tokens, length, error in (
            ([token for token in kerashub.VOCABULARY if token != "[MASK]"], 9, r"`preprocessor\.tokenizer` must know"),
            ([*kerashub.VOCABULARY, *"bcdefghi"], 9, r"`preprocessor\.tokenizer\.vocabulary_size\(\)` must be at most"),
            (kerashub.VOCABULARY, 18, r"`preprocessor\.max_length` must be at most the model's 17\. Received: .*=18"),
        ):
            preprocessor = BertPreprocessor(BertTokenizer(tokens), max_length=length)
            self.save(backbone, tmp_path, ValueError, error, preprocessor=preprocessor)

    def test_directory_that_holds_something(self, make, tmp_path):
        (tmp_path / "preset").mkdir()
        (tmp_path / "preset" / "notes.txt").write_text("mine")
        with pytest.raises(CheckpointError, match=r"`save_kerashub`: `directory` must be new, or an empty directory"):
            save_kerashub(make.backbone(), tmp_path / "preset")
        assert [path.name for path in (tmp_path / "preset").iterdir()] == ["notes.txt"]

    def test_interrupt_leaves_nothing(self, make, tmp_path, monkeypatch):
        def interrupted(self, name):
            raise KeyboardInterrupt

        backbone = make.backbone()
        monkeypatch.setattr("keras_bert_layers.checkpoints.weights.model_tensors.ModelTensors.read", interrupted)
        self.save(backbone, tmp_path, KeyboardInterrupt, None)


def test_same_model_same_bytes(make, tmp_path):
    backbone = make.backbone()
    one, two = (save_kerashub(backbone, tmp_path / name) for name in ("one", "two"))
    for path in one.iterdir():
        assert path.read_bytes() == (two / path.name).read_bytes()


def test_no_warning_where_nothing_is_lost(make, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        directory = save_kerashub(make.backbone(), tmp_path / "preset")
    assert {info.dtype for info in Hdf5File(directory / "model.weights.h5").infos.values()} == {"F32"}
