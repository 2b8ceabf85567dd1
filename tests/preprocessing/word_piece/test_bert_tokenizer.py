"""The interface of `BertTokenizer`: shapes, ways to run, vocabulary, configuration."""

import copy
import pickle
import subprocess
import sys

import keras
import numpy as np
import pytest
from small_vocabulary import TOKENS

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import AddedToken, BertTokenizer

# One copy of each table in a SavedModel, and half a megabyte per signature for the graph itself.
GRAPH_BYTES = 500_000


def tokens(tokenizer, text):
    return [tokenizer.id_to_token(token_id) for token_id in tokenizer.tokenize(text).numpy()]


@pytest.mark.parametrize(
    "text",
    [
        ["Unaffable!", "", "what?"],
        ("Unaffable!", "", "what?"),
        np.array(["Unaffable!", "", "what?"]),
        np.array(["Unaffable!", "", "what?"], object),
        np.array([b"Unaffable!", b"", b"what?"]),
        tf.constant(["Unaffable!", "", "what?"]),
    ],
)
def test_batch(text, tokenizer):
    ids = tokenizer.tokenize(text)
    assert isinstance(ids, tf.RaggedTensor)
    assert ids.dtype == tf.int32
    assert ids.shape.as_list() == [3, None]
    assert ids.to_list() == [[5, 6, 7, 8], [], [9, 10]]
    assert tokenizer(text).to_list() == ids.to_list()


@pytest.mark.parametrize("text", ["what?", b"what?", np.str_("what?"), tf.constant("what?")])
def test_one_string(text, tokenizer):
    ids = tokenizer.tokenize(text)
    assert isinstance(ids, tf.Tensor)
    assert ids.numpy().tolist() == [9, 10]
    assert [part.numpy().tolist() for part in tokenizer.tokenize_with_offsets(text)] == [[9, 10], [0, 4], [4, 5]]


def test_two_axes(tokenizer):
    ids, starts, ends = tokenizer.tokenize_with_offsets([["what", "a b"], ["", "b!"], ["?", "ab"]])
    assert ids.shape.as_list() == [3, 2, None]
    assert ids.to_list() == [[[9], [11, 12]], [[], [12, 8]], [[10], [14]]]
    assert starts.to_list() == [[[0], [0, 2]], [[], [0, 1]], [[0], [0]]]
    assert ends.to_list() == [[[4], [1, 3]], [[], [1, 2]], [[1], [2]]]


def test_ragged(tokenizer):
    text = tf.ragged.constant([["what", "a b", ""], [], ["b!"]])
    assert tokenizer.tokenize(text).to_list() == [[[9], [11, 12], []], [], [[12, 8]]]


def test_ragged_with_a_dense_last_axis(tokenizer):
    text = tf.RaggedTensor.from_row_splits([["a", "b"], ["what", ""], ["!", "ab"]], [0, 1, 3])
    assert tokenizer.tokenize(text).to_list() == [[[[11], [12]]], [[[9], []], [[8], [14]]]]


@pytest.mark.parametrize("text", [[], tf.constant([], tf.string), np.array([], object)])
def test_no_texts(text, tokenizer):
    for part in tokenizer.tokenize_with_offsets(text):
        assert part.to_list() == []


def test_in_a_function(tokenizer):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def run(text):
        return tokenizer.tokenize(text), tokenizer.tokenize_with_offsets(text)

    ids, (same_ids, starts, ends) = run(tf.constant(["ab!", "Σ" * 201]))
    assert ids.to_list() == same_ids.to_list() == [[14, 8], [1]]
    assert starts.to_list() == [[0, 2], [0]]
    assert ends.to_list() == [[2, 3], [402]]


def test_static_shape_survives(tokenizer):
    @tf.function(input_signature=[tf.TensorSpec([5], tf.string)])
    def run(text):
        assert tokenizer.tokenize(text).shape.as_list() == [5, None]
        return tokenizer.tokenize(text)

    assert run(tf.constant(list("ab!?["))).to_list() == [[11], [12], [8], [10], [15]]


def test_in_a_dataset(huggingface):
    data = tf.data.Dataset.from_tensor_slices(["a", "what [SEP] b", "[sep]"])
    assert [ids.numpy().tolist() for ids in data.map(huggingface)] == [[11], [9, 3, 12], [15, 17, 16]]
    assert [ids.to_list() for ids in data.batch(2).map(huggingface)] == [[[11], [9, 3, 12]], [[15, 17, 16]]]


def test_with_functions_run_eagerly(huggingface, eagerly):
    texts = ["ab [SEP]", "x" * 101, "what"]
    expected = [part.to_list() for part in huggingface.tokenize_with_offsets(texts)]
    with eagerly():
        assert [part.to_list() for part in huggingface.tokenize_with_offsets(texts)] == expected


def test_made_inside_a_graph():
    made = []

    @tf.function
    def run(text):
        made.append(BertTokenizer(TOKENS))
        return made[-1].tokenize(text)

    assert run(tf.constant(["ab"])).to_list() == [[14]]
    assert made[-1].tokenize(["what"]).to_list() == [[9]]


@pytest.mark.usefixtures("in_graph")
def test_unknown_rank_is_refused(tokenizer):
    with pytest.raises(ValueError, match="`text` must have a known number of axes"):
        tf.function(tokenizer.tokenize, input_signature=[tf.TensorSpec(None, tf.string)]).get_concrete_function()


@pytest.mark.parametrize("text", [7, [1.5], tf.constant([1]), None, [["a"], ["b", "c"]]])
def test_text_that_is_not_strings(text, tokenizer):
    with pytest.raises(TypeError, match=r"^`BertTokenizer`: `text` must be strings\. Received: text="):
        tokenizer.tokenize(text)


@pytest.mark.slow
def test_saved_model(tmp_path, minilm):
    """Runs where only TensorFlow and tensorflow-text are imported, and holds each table once."""
    pytest.importorskip("tensorflow_text")
    tokenizer = BertTokenizer(minilm / "vocab.txt", reference="huggingface")
    module = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def tokenize(text):
        return {"ids": tokenizer.tokenize(text).to_tensor()}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def offsets(text):
        return dict(
            zip(("ids", "starts", "ends"), (x.to_tensor() for x in tokenizer.tokenize_with_offsets(text)), strict=True)
        )

    module.tokenize, module.offsets = tokenize, offsets
    tf.saved_model.save(module, tmp_path, signatures={"tokenize": tokenize, "offsets": offsets})
    parts = tokenizer._encoder._word_pieces._model, tokenizer._encoder._normalizer._replacer
    tables = [int(tf.size(part.model)) for part in parts]
    assert (tmp_path / "saved_model.pb").stat().st_size < sum(tables) + 2 * GRAPH_BYTES
    text = ["Hello wörld [SEP]", "ก" * 101]
    program = (
        "import tensorflow as tf, tensorflow_text\n"
        f"model = tf.saved_model.load({str(tmp_path)!r})\n"
        f"result = model.signatures['offsets'](text=tf.constant({text!r}))\n"
        "print([result[k].numpy().tolist() for k in ('ids', 'starts', 'ends')])\n"
        f"print(model.signatures['tokenize'](text=tf.constant({text!r}))['ids'].numpy().tolist())\n"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert output.splitlines() == [
        "[[[7592, 2088, 102], [100, 0, 0]], [[0, 6, 13], [0, 0, 0]], [[5, 12, 18], [303, 0, 0]]]",
        "[[7592, 2088, 102], [100, 0, 0]]",
    ]


def test_special_ids(tokenizer):
    ids = (tokenizer.pad_id, tokenizer.unknown_id, tokenizer.start_id, tokenizer.separator_id, tokenizer.mask_id)
    assert ids == (0, 1, 2, 3, 4)
    shuffled = BertTokenizer(["a", "[SEP]", "[PAD]", "[UNK]", "[CLS]", "[MASK]"])
    ids = (shuffled.pad_id, shuffled.unknown_id, shuffled.start_id, shuffled.separator_id, shuffled.mask_id)
    assert ids == (2, 3, 4, 1, 5)
    assert shuffled.tokenize("a x").numpy().tolist() == [0, 3]


def test_mask_is_optional():
    tokenizer = BertTokenizer(TOKENS[:4], reference="huggingface")
    assert tokens(tokenizer, "[MASK][SEP]") == ["[UNK]", "[UNK]", "[UNK]", "[SEP]"]
    with pytest.raises(ValueError, match=r"`token` must be a token of the vocabulary\. Received: token='\[MASK\]'"):
        tokenizer.mask_id  # noqa: B018


def test_ids_and_tokens(tokenizer):
    assert tokenizer.vocabulary_size() == len(TOKENS)
    assert [tokenizer.id_to_token(tokenizer.token_to_id(token)) for token in TOKENS] == TOKENS
    assert tokenizer.id_to_token(np.int32(5)) == "un"


@pytest.mark.parametrize("token_id", [-1, len(TOKENS)])
def test_id_out_of_range(token_id, tokenizer):
    with pytest.raises(ValueError, match=f"`token_id` must be at least 0 and less than {len(TOKENS)}.*={token_id}"):
        tokenizer.id_to_token(token_id)


def test_token_not_in_the_vocabulary(tokenizer):
    with pytest.raises(
        ValueError, match=r"`token` must be a token of the vocabulary.*token='x'.*becomes \[UNK\], id 1"
    ):
        tokenizer.token_to_id("x")


def test_detokenize(tokenizer):
    text = ["unaffable ! what", "a b ab", ""]
    assert [x.decode() for x in tokenizer.detokenize(tokenizer.tokenize(text)).numpy()] == text
    padded = tokenizer.tokenize(text).to_tensor(tokenizer.pad_id)
    assert [x.decode() for x in tokenizer.detokenize(padded).numpy()] == text
    assert tokenizer.detokenize([5, 6, 7]).numpy() == b"unaffable"
    assert tokenizer.detokenize([[5, 6], [13]]).numpy().tolist() == [b"unaff", b"##b"]
    assert tokenizer.detokenize(np.array([[[2, 11, 3]]])).numpy().tolist() == [[b"[CLS] a [SEP]"]]
    nested = tf.ragged.constant([[[5, 6], [11]], []])
    assert tokenizer.detokenize(nested).to_list() == [[b"unaff", b"a"], []]


def test_config(tokenizer):
    config = {
        "vocabulary": TOKENS,
        "lowercase": False,
        "strip_accents": True,
        "split_chinese": False,
        "num_pair_separators": 2,
        "reference": "huggingface",
        "added_tokens": [AddedToken("<e>", rstrip=True).get_config()],
        "special_tokens": {"pad": "a", "unknown": "[UNK]", "start": "[CLS]", "separator": "b", "mask": "!"},
    }
    assert BertTokenizer(**config).get_config() == config
    assert BertTokenizer.from_config(config).get_config() == config
    assert tokenizer.get_config()["strip_accents"] is None


def test_config_of_a_file(tmp_path):
    (tmp_path / "vocab.txt").write_bytes("\r\n".join(TOKENS).encode())
    assert BertTokenizer(tmp_path / "vocab.txt").get_config()["vocabulary"] == TOKENS


@pytest.mark.parametrize(
    "travel",
    [
        lambda tokenizer: keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(tokenizer)),
        lambda tokenizer: pickle.loads(pickle.dumps(tokenizer)),
        copy.deepcopy,
    ],
)
def test_copies(travel, huggingface):
    copied = travel(huggingface)
    assert copied.get_config() == huggingface.get_config()
    assert copied.tokenize("a[SEP]").numpy().tolist() == [11, 3]


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"lowercase": 1}, TypeError, "`lowercase` must be True or False"),
        ({"strip_accents": "yes"}, TypeError, "`strip_accents` must be True or False"),
        ({"split_chinese": None}, TypeError, "`split_chinese` must be True or False"),
        ({"reference": "bert"}, ValueError, r"`reference` must be one of \['google', 'huggingface'\]"),
        ({"vocabulary": ["a"]}, ValueError, r"`vocabulary` must hold \[PAD\]"),
    ],
)
def test_wrong_arguments(arguments, error, match):
    with pytest.raises(error, match=match):
        BertTokenizer(**{"vocabulary": TOKENS, **arguments})


def test_switches_are_keywords_only():
    with pytest.raises(TypeError, match="positional"):
        BertTokenizer(TOKENS, True, False)
