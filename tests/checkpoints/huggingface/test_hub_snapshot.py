import hashlib
import os

import pytest

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.huggingface.hub_snapshot import check_hash, checkpoint_files, holds_weights

# What lies in google-bert/bert-base-uncased.
BASE = (
    ".gitattributes LICENSE README.md config.json flax_model.msgpack model.onnx model.safetensors pytorch_model.bin "
    "rust_model.ot tf_model.h5 tokenizer.json tokenizer_config.json vocab.txt coreml/fill-mask/m"
)
# What lies in google/bert_uncased_L-4_H-256_A-4: the checkpoint of Google's release, and a pickle of it.
SMALL = (
    ".gitattributes README.md bert_model.ckpt.data-00000-of-00001 bert_model.ckpt.index config.json flax_model.msgpack "
    "pytorch_model.bin vocab.txt"
)
# What lies in sentence-transformers/all-MiniLM-L6-v2, a part of it.
MINILM = (
    "1_Pooling/config.json config.json config_sentence_transformers.json model.safetensors modules.json "
    "onnx/model.onnx onnx/model_O1.onnx openvino/openvino_model.bin openvino/openvino_model.xml pytorch_model.bin "
    "rust_model.ot sentence_bert_config.json special_tokens_map.json tf_model.h5 tokenizer.json "
    "tokenizer_config.json train_script.py data_config.json vocab.txt"
)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (BASE, "config.json model.safetensors tokenizer.json tokenizer_config.json vocab.txt"),
        (SMALL, "bert_model.ckpt.data-00000-of-00001 bert_model.ckpt.index config.json vocab.txt"),
        (
            MINILM,
            "1_Pooling/config.json config.json config_sentence_transformers.json model.safetensors modules.json "
            "sentence_bert_config.json special_tokens_map.json tokenizer.json tokenizer_config.json vocab.txt",
        ),
        (
            "bert_config.json bert_model.ckpt.data-00000-of-00001 bert_model.ckpt.index bert_model.ckpt.meta vocab.txt",
            "bert_config.json bert_model.ckpt.data-00000-of-00001 bert_model.ckpt.index vocab.txt",
        ),
        (
            "config.json model-00001-of-00002.safetensors model-00002-of-00002.safetensors "
            "model.safetensors.index.json pytorch_model.bin model.fp16.safetensors adapter_model.safetensors",
            "config.json model-00001-of-00002.safetensors model-00002-of-00002.safetensors "
            "model.safetensors.index.json",
        ),
        ("config.json pytorch_model.bin tf_model.h5", "config.json pytorch_model.bin"),
        (
            "pytorch_model-00001-of-00001.bin pytorch_model.bin.index.json training_args.bin optimizer.bin",
            "pytorch_model-00001-of-00001.bin pytorch_model.bin.index.json",
        ),
        (
            "modules.json 0_BERT/config.json 0_BERT/pytorch_model.bin 0_BERT/vocab.txt 2_Dense/config.json "
            "2_Dense/model.safetensors 2_Dense/pytorch_model.bin",
            "0_BERT/config.json 0_BERT/pytorch_model.bin 0_BERT/vocab.txt 2_Dense/config.json "
            "2_Dense/model.safetensors modules.json",
        ),
        (
            "assets/tokenizer/vocabulary.txt config.json metadata.json model.weights.h5 preprocessor.json task.json "
            "task.weights.h5 tokenizer.json README.md",
            "assets/tokenizer/vocabulary.txt config.json metadata.json model.weights.h5 preprocessor.json task.json "
            "task.weights.h5 tokenizer.json",
        ),
        ("config.json tf_model.h5 flax_model.msgpack model.fp16.safetensors", "config.json tf_model.h5"),
        (
            "config.json model.fp16-00001-of-00001.safetensors model.safetensors.index.fp16.json onnx/model.onnx",
            "config.json model.fp16-00001-of-00001.safetensors model.safetensors.index.fp16.json",
        ),
        ("config.json best.safetensors adapter_model.bin", "best.safetensors config.json"),
        (
            "adapter_config.json adapter_model.safetensors config.json model.safetensors",
            "adapter_config.json adapter_model.safetensors config.json model.safetensors",
        ),
        ("adapter_config.json adapter_model.bin README.md", "adapter_config.json adapter_model.bin"),
        (
            "config.json model.safetensors text_matching/adapter_config.json text_matching/adapter_model.safetensors "
            "text_matching/README.md ../adapter_config.json checkpoint-500/adapter_config.json",
            "config.json model.safetensors text_matching/adapter_config.json text_matching/adapter_model.safetensors",
        ),
        ("checkpoint-500/config.json checkpoint-500/model.safetensors ../config.json a/1_Pooling/config.json", ""),
    ],
    ids="base small sentence-transformers google shards pickle pickles oldest kerashub h5 variant name adapter alone "
    "adapters elsewhere".split(),
)
def test_files_of_a_checkpoint(names, expected):
    wanted = checkpoint_files(names.split())
    assert wanted == sorted(expected.split())
    assert holds_weights(wanted) == bool(expected)
    small = checkpoint_files(names.split(), weights=False)
    assert not holds_weights(small)
    assert set(small) == {name for name in wanted if name.endswith((".txt", ".json")) and ".index." not in name}


# The hash of an empty blob and of "hello\n" as `git hash-object` prints them.
@pytest.mark.parametrize(
    ("content", "digest"),
    [
        (b"", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"),
        (b"hello\n", "ce013625030ba8dba906f756967f9e9ca394464a"),
        (b"hello\n", hashlib.sha256(b"hello\n").hexdigest()),
    ],
)
def test_hashes(tmp_path, content, digest):
    path = tmp_path / "file"
    path.write_bytes(content)
    check_hash(path, digest)
    wrong = digest[:-1] + ("0" if digest[-1] != "0" else "1")
    with pytest.raises(
        CheckpointError, match=rf"file: must have the .* {wrong}\. Received: {digest}\. The file was damaged in tra"
    ):
        check_hash(path, wrong)


def test_a_changed_file_is_read_again(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"one")
    digest = hashlib.sha256(b"one").hexdigest()
    check_hash(path, digest)
    path.write_bytes(b"two")
    os.utime(path, ns=(0, 0))
    with pytest.raises(CheckpointError, match="must have the SHA-256"):
        check_hash(path, digest)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(CheckpointError, match=r"file: the file is missing"):
        check_hash(tmp_path / "file", "0" * 40)
