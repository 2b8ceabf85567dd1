"""Every key of a checkpoint's JSON files with every kind of value: an error that names the file, or a load."""

import copy
import json
import random
import warnings

import numpy as np
import pytest
from safetensors.numpy import save_file

from keras_bert_layers import (
    BertBackbone,
    BertClassifier,
    BertConfig,
    BertPreprocessor,
    BertSentenceEncoder,
    load_task,
)
from keras_bert_layers.checkpoints import CheckpointError, save_huggingface, task_loader
from keras_bert_layers.checkpoints.huggingface.families.modernbert import MODERNBERT
from keras_bert_layers.checkpoints.huggingface.families.mpnet import MPNET
from keras_bert_layers.checkpoints.weights.loading import check_num_layers, check_sizes
from keras_bert_layers.checkpoints.weights.table import backbone_rows
from keras_bert_layers.preprocessing import BertTokenizer, BytePairTokenizer, SentencePieceTokenizer
from keras_bert_layers.preprocessing.byte_level.merges import byte_characters

NESTED = []
for _ in range(50):
    NESTED = [NESTED]
VALUES = [
    *(None, True, [], [1], [None], {}, {"a": [1]}, {"a": None}, {"0": {"content": 3}}, NESTED),
    *("", "x", "a\0b", "\ud800", "x" * 900),
    *(-1, 0, 1, 3, 10**9, 10**12, 10**30, 1.5, -1.5, 1e300, float("nan"), float("inf")),
]
FEW = 60
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"ab"]
SIZES = {"hidden_dim": 4, "num_layers": 2, "num_heads": 2, "intermediate_dim": 3, "max_sequence_length": 6}
MODULE = "base_model.model.{}encoder.layer.0.attention.self.query.lora_"


def byte_level():
    return BytePairTokenizer([*SPECIAL, *byte_characters().values(), "ab"], ["a b"], stripping_tokens=["<mask>"])


def modern():
    tokens = {"start_token": "[CLS]", "separator_token": "[SEP]", "pad_token": "[PAD]", "unknown_token": "[UNK]"}
    vocabulary = [*byte_characters().values(), "ab", "[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
    options = {"trim_offsets": False, "num_pair_separators": 1, "normalizer": "nfc", "mask_token": "[MASK]", **tokens}
    return BytePairTokenizer(vocabulary, ["a b"], **options)


def sentence_piece():
    return SentencePieceTokenizer([*SPECIAL[:4], "▁", "a", "b", "<mask>"], [0.0] * 4 + [-1.0, -2.0, -3.0, 0.0])


def write(folder, tokenizer, family=None, **changes):
    values = {**SIZES, "vocabulary_size": tokenizer.vocabulary_size(), "position_offset": 0, **changes}
    config = BertConfig(**values)
    parts = None if family is None else family.parts.read({"local_attention": 4}, config)
    task = BertClassifier(
        BertBackbone(config, parts=parts), num_classes=2, preprocessor=BertPreprocessor(tokenizer, max_length=5)
    )
    save_huggingface(task, folder)
    return folder


def with_adapter(folder):
    """LoRA of every kind, with patterns."""
    tensors = {f"{MODULE.format('bert.')}A.weight": np.ones((2, 4), "f4")}
    tensors |= {f"{MODULE.format('bert.')}B.weight": np.ones((4, 2), "f4")}
    save_file(tensors, folder / "adapter_model.safetensors")
    values = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "rank_pattern": {"query": 2}, "alpha_pattern": {"key": 1}}
    others = {"base_model_name_or_path": str(folder), "task_type": "SEQ_CLS", "use_rslora": False, "bias": "none"}
    others |= {"auto_mapping": {"base_model_class": "BertModel"}, "target_modules": ["query"], "modules_to_save": None}
    (folder / "adapter_config.json").write_text(json.dumps({**values, **others}))
    return folder


MODERN = {"num_segments": 0, "pooler_activation": "gelu_erf"}
FAMILIES = {
    "roberta": lambda folder: write(folder, byte_level(), position_offset=2, num_segments=1),
    "xlm-roberta": lambda folder: write(folder, sentence_piece(), position_offset=2, num_segments=1),
    "mpnet": lambda folder: write(
        folder,
        BertTokenizer([WORDS[1], WORDS[0], *WORDS[2:]], reference="huggingface"),
        MPNET,
        position_offset=2,
        num_segments=0,
    ),
    "modernbert": lambda folder: write(folder, modern(), MODERNBERT, **MODERN),
    "adapter": lambda folder: with_adapter(write(folder, BertTokenizer(WORDS, reference="huggingface"))),
}
# Keys that files of others have.
MORE = {
    "config.json": {
        "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 50.0}},
        **{"local_attention": 4, "classifier_pooling": "cls", "layer_types": ["full_attention", "sliding_attention"]},
        **{"local_rope_theta": 9.0, "architectures": ["X"], "id2label": {"0": "a", "1": "b"}, "pad_token_id": 1},
        **{"quantization_config": {"quant_method": "x"}, "problem_type": None, "classifier_dropout": 0.1},
        **{
            "tie_word_embeddings": True,
            "global_attn_every_n_layers": 3,
            "global_rope_theta": 9.0,
            "label2id": {"a": 0},
        },
    },
    "tokenizer_config.json": {
        "added_tokens_decoder": {"0": {"content": "<s>", "lstrip": False}},
        **{"extra_special_tokens": ["<s>"], "additional_special_tokens": ["<s>"], "mask_token": {"content": "<mask>"}},
        **{"model_max_length": 5, "truncation_side": "right", "padding_side": "right", "add_prefix_space": False},
        **{"trim_offsets": True, "do_lower_case": True, "tokenize_chinese_chars": True, "tokenizer_class": "X"},
    },
    "added_tokens.json": {"<s>": 0},
    "special_tokens_map.json": {"cls_token": {"content": "<s>"}, "mask_token": "<mask>", "extra_special_tokens": []},
}


def places(value, path=()):
    """The paths to the values; of a long list or object, to the first and the last."""
    if path:
        yield path
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    for key in [*keys[:4], *keys[-3:]] if len(keys) > 40 else keys:
        yield from places(value[key], (*path, key))


def changed(value, path, new):
    value = copy.deepcopy(value)
    part = value
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = copy.deepcopy(new)
    return value


def cases(folder):
    """File -> its content, and all changes of one value, and of one name."""
    for path in sorted({*folder.glob("*.json"), *(folder / name for name in MORE)}):
        values = json.loads(path.read_bytes()) if path.exists() else {}
        if path.name.endswith("index.json") or not isinstance(values, dict):
            continue
        more = {key: value for key, value in MORE.get(path.name, {}).items() if key not in values}
        for place in places({**values, **more}):
            start = values if place[0] in values else {**values, place[0]: more[place[0]]}
            for new in VALUES:
                yield path, place, changed(start, place, new)
        for new in (None, [], 1, "x", {"": 0}, {"\ud800": 0}, {"": [0]}, *({key: {}} for key in list(values)[:2])):
            yield path, (), new


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    found = {}

    def folder_of(name):
        if name not in found:
            found[name] = FAMILIES[name](tmp_path_factory.mktemp("families") / name)
        return found[name]

    return folder_of


class Read(Exception):  # noqa: N818
    """All files were read, and the model would be made next."""


@pytest.fixture
def files_only(monkeypatch):
    """Checks the sizes of a model, and does not make it."""

    def read(checkpoint, head, make, **rules):
        check_num_layers(checkpoint, checkpoint.weights)
        check_sizes((*backbone_rows(checkpoint.config, checkpoint.parts), *head), checkpoint, checkpoint.weights)
        raise Read

    monkeypatch.setattr(task_loader, "read_model", read)


def check(folder, path, place, content):
    """What is wrong with how a checkpoint with a changed file is read; None for an error that names it, or a load."""
    before = path.read_bytes() if path.exists() else None
    path.write_text(json.dumps(content))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            load_task(folder, "classifier")
    except Read:
        return None
    except CheckpointError as error:
        text = str(error)
        wrong = "\n" in text or len(text) > 3000 or str(folder) not in text
        return f"{path.name} {place}: {text[:300]}" if wrong else None
    except Exception as error:
        shown = content if not place else [content := content[key] for key in place][-1]
        return f"{path.name} {place} {json.dumps(shown)[:60]}: {type(error).__name__}: {str(error)[:200]}"
    finally:
        path.unlink() if before is None else path.write_bytes(before)
    return None


@pytest.mark.usefixtures("files_only")
@pytest.mark.parametrize("name", FAMILIES)
def test_values(name, folders):
    folder = folders(name)
    chosen = random.Random(7).sample(list(cases(folder)), FEW)
    assert [wrong for case in chosen if (wrong := check(folder, *case))] == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FAMILIES)
def test_all_values(name, folders):
    folder = folders(name)
    assert [wrong for case in cases(folder) if (wrong := check(folder, *case))] == []


CASES = {
    "rope_parameters": [[1], "x", 3, {"full_attention": [1]}, {"full_attention": "x"}],
    "classifier_pooling": ["x", None, [1]],
    "local_attention": [5, 10**12],
    "global_rope_theta": [float("inf"), float("nan")],
    "max_position_embeddings": [10**9],
    "num_hidden_layers": [10**6],
    "hidden_size": [2 * 10**6],
    "vocab_size": [10**9],
}


@pytest.mark.usefixtures("files_only")
def test_values_of_modernbert(folders):
    """None of these loads."""
    folder = folders("modernbert")
    path, found = folder / "config.json", {}
    values = json.loads(path.read_bytes())
    try:
        for key, wrong in ((key, wrong) for key, many in CASES.items() for wrong in many):
            layers = {"layer_types": ["full_attention"] * wrong} if key == "num_hidden_layers" else {}
            path.write_text(json.dumps({**values, key: wrong, **layers}))
            try:
                load_task(folder, "classifier")
            except CheckpointError as error:
                found[key, str(wrong)] = str(folder) in str(error)
    finally:
        path.write_text(json.dumps(values))
    expected = [(key, str(wrong)) for key, many in CASES.items() for wrong in many]
    assert [key for key in expected if not found.get(key)] == []


def test_a_projection_of_another_width(tmp_path):
    """A layer of this width is not made, which would take 64 GB; several layers of the right widths are."""
    tokenizer = BertTokenizer(WORDS, reference="huggingface")
    backbone = BertBackbone(BertConfig(**SIZES, vocabulary_size=len(WORDS)))
    preprocessor = BertPreprocessor(tokenizer, max_length=5)
    encoder = BertSentenceEncoder(
        backbone, preprocessor=preprocessor, projection_dim=(3, 2), projection_activation=("tanh", "linear")
    )
    save_huggingface(encoder, tmp_path / "encoder")
    np.testing.assert_array_equal(load_task(tmp_path / "encoder").predict(["good"]), encoder.predict(["good"]))
    path = max((tmp_path / "encoder").glob("*_Dense/config.json"))
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "out_features": 4 * 10**9}))
    with pytest.raises(CheckpointError, match=r"`out_features` must be the rows of 'dense\.1\.linear\.weight'"):
        load_task(tmp_path / "encoder")
