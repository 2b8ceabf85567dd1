import copy
import pickle
import subprocess
import sys
import time

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers.preprocessing import BertTokenizer

TOKENS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *["un", "##aff", "##able", "!", "what", "?", "a", "b", "##b", "ab", "[", "]", "sep", "σ", "##σ", "##ς"],
]
# A word that no one should wait for; linear time makes it a fraction of a second, quadratic time minutes.
MILLION = 1_000_000
SECONDS = 20
# One copy of each table in a SavedModel, and half a megabyte for the graph itself.
GRAPH_BYTES = 500_000


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(TOKENS)


@pytest.fixture(scope="module")
def huggingface():
    return BertTokenizer(TOKENS, reference="huggingface")


def tokens(tokenizer, text):
    return [tokenizer.id_to_token(token_id) for token_id in tokenizer.tokenize(text).numpy()]


def pieces(tokenizer, text):
    """Tokens with the bytes that their offsets cut out."""
    data = text if isinstance(text, bytes) else text.encode()
    ids, starts, ends = (part.numpy() for part in tokenizer.tokenize_with_offsets(text))
    return [(tokenizer.id_to_token(i), data[start:end]) for i, start, end in zip(ids, starts, ends, strict=True)]


# --- shapes and ways to run


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


def test_with_functions_run_eagerly(huggingface):
    texts = ["ab [SEP]", "x" * 101, "what"]
    expected = [part.to_list() for part in huggingface.tokenize_with_offsets(texts)]
    tf.config.run_functions_eagerly(True)
    try:
        assert [part.to_list() for part in huggingface.tokenize_with_offsets(texts)] == expected
    finally:
        tf.config.run_functions_eagerly(False)


def test_made_inside_a_graph():
    made = []

    @tf.function
    def run(text):
        made.append(BertTokenizer(TOKENS))
        return made[-1].tokenize(text)

    assert run(tf.constant(["ab"])).to_list() == [[14]]
    assert made[-1].tokenize(["what"]).to_list() == [[9]]


def test_unknown_rank_is_refused(tokenizer):
    with pytest.raises(ValueError, match="`text` must have a known number of axes"):
        tf.function(tokenizer.tokenize, input_signature=[tf.TensorSpec(None, tf.string)]).get_concrete_function()


@pytest.mark.parametrize("text", [7, [1.5], tf.constant([1]), None, [["a"], ["b", "c"]]])
def test_text_that_is_no_string(text, tokenizer):
    with pytest.raises(TypeError, match=r"^`BertTokenizer`: `text` must be strings\. Received: text="):
        tokenizer.tokenize(text)


def test_saved_model(tmp_path, minilm):
    """Runs where only TensorFlow and tensorflow-text are imported, and holds each table once."""
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
    tables = [
        int(tf.size(model)) for model in (tokenizer._encoder._word_pieces._model, tokenizer._encoder._normalizer.model)
    ]
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


# --- values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \t\r\n\u00a0\u3000\u2028", []),
        ("Unaffable!", ["un", "##aff", "##able", "!"]),
        ("ÜN\u0301affable", ["un", "##aff", "##able"]),
        ("a\x00b a\ufffdb a\u200db", ["ab", "ab", "ab"]),
        ("a中b", ["a", "[UNK]", "b"]),
        ("unx", ["[UNK]"]),
        ("[SEP]", ["[", "sep", "]"]),
        ("abb", ["ab", "##b"]),
        (b"a\xffb", ["ab"]),
        (b"a\xed\xa0\x80b \xe2\x82", ["ab"]),
    ],
)
def test_google(text, expected, tokenizer):
    assert tokens(tokenizer, text) == expected
    assert [token for token, _ in pieces(tokenizer, text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[SEP]", ["[SEP]"]),
        ("a[SEP]b[MASK][CLS] [PAD]", ["a", "[SEP]", "b", "[MASK]", "[CLS]", "[PAD]"]),
        ("[sep] [ SEP]", ["[", "sep", "]", "[", "sep", "]"]),
        ("un[UNK]affable", ["un", "[UNK]", "[UNK]"]),
        ("a\ue000b\x00b[SEP]b", ["ab", "##b", "[SEP]", "b"]),
    ],
)
def test_huggingface(text, expected, huggingface):
    assert tokens(huggingface, text) == expected
    assert [token for token, _ in pieces(huggingface, text)] == expected


def test_offsets_count_bytes_of_the_original(tokenizer):
    assert pieces(tokenizer, "\u00a0ÜN\u0301afF\u0301ABLÉ\u0301 !") == [
        ("un", "ÜN".encode()),
        ("##aff", "\u0301afF".encode()[2:]),
        ("##able", b"ABL\xc3\x89"),
        ("!", b"!"),
    ]


def test_offsets_of_special_tokens(huggingface):
    assert pieces(huggingface, "Éa[SEP]Σ b") == [
        ("[UNK]", "Éa".encode()),
        ("[SEP]", b"[SEP]"),
        ("σ", "Σ".encode()),
        ("b", b"b"),
    ]


def test_parts_of_one_character_cover_it():
    tokenizer = BertTokenizer([*TOKENS, "\u1100", "##\u1161", "##\u11a8"])
    assert pieces(tokenizer, "a 각!")[1:] == [(part, "각".encode()) for part in ("\u1100", "##\u1161", "##\u11a8")] + [
        ("!", b"!")
    ]


def test_final_sigma(tokenizer, huggingface):
    """Python's `lower` makes ς of a capital sigma that ends a word; the library of HuggingFace does not."""
    assert tokens(tokenizer, "ΣΣ ΣΣΣ Σ'Σ Σ") == ["σ", "##ς", "σ", "##σ", "##ς", "σ", "[UNK]", "[UNK]", "σ"]
    assert tokens(huggingface, "ΣΣ Σ") == ["σ", "##σ", "σ"]


@pytest.mark.parametrize("character", ["a", "é", "ก", "😀"])
@pytest.mark.parametrize(("reference", "limit"), [("google", 200), ("huggingface", 100)])
@pytest.mark.parametrize("split_chinese", [True, False])
def test_limit_counts_characters(character, reference, limit, split_chinese):
    tokenizer = BertTokenizer(
        [*TOKENS[:5], "a", "é", "ก", "😀", "##a", "##é", "##ก", "##😀"],
        strip_accents=False,
        reference=reference,
        split_chinese=split_chinese,
    )
    texts = [character * limit, f"a {character * (limit + 1)} a", character * (limit - 1)]
    ids, starts, ends = tokenizer.tokenize_with_offsets(texts)
    size = len(character.encode())
    assert [len(row) for row in ids.to_list()] == [limit, 3, limit - 1]
    assert ids.to_list()[1] == [5, 1, 5]
    assert starts.to_list()[1] == [0, 2, 3 + size * (limit + 1)]
    assert ends.to_list()[1] == [1, 2 + size * (limit + 1), 4 + size * (limit + 1)]
    assert ends.to_list()[0][-1] == size * limit
    assert tokenizer.tokenize(texts).to_list() == ids.to_list()


def test_only_texts_that_need_it_go_the_careful_way(huggingface):
    """In one batch, all others keep their place and their tokens."""
    texts = ["ab", "a [SEP]", "", "un", "x" * 101 + " a", "[", "b" * 60 + "x" * 60 + "[PAD]", "ab!"]
    together = [part.to_list() for part in huggingface.tokenize_with_offsets(texts)]
    alone = [[part.numpy().tolist() for part in huggingface.tokenize_with_offsets(text)] for text in texts]
    assert [list(row) for row in zip(*together, strict=True)] == alone
    assert together[0] == [[14], [11, 3], [], [5], [1, 11], [15], [1, 0], [14, 8]]


@pytest.mark.parametrize("character", ["a", "é", "ก", "."])
def test_million_characters(character, huggingface):
    start = time.perf_counter()
    ids = huggingface.tokenize([character * MILLION])
    assert time.perf_counter() - start < SECONDS
    assert len(ids.to_list()[0]) == (MILLION if character == "." else 1)


def test_split_chinese():
    vocabulary = [*TOKENS, "中", "##中", "##b!"]
    text = "a中b中 中中!"
    assert tokens(BertTokenizer(vocabulary), text) == ["a", "中", "b", "中", "中", "中", "!"]
    assert tokens(BertTokenizer(vocabulary, split_chinese=False), text) == [
        *("a", "##中", "##b", "##中", "中", "##中", "!")
    ]
    vocabulary += ["a中", "中!"]
    assert tokens(BertTokenizer(vocabulary, split_chinese=False), text)[:2] == ["a中", "##b"]


@pytest.mark.parametrize(
    ("lowercase", "strip_accents", "expected"),
    [
        (True, None, ["e", "e"]),
        (False, None, ["É", "é"]),
        (True, False, ["é", "é"]),
        (False, True, ["E", "e"]),
        (True, True, ["e", "e"]),
        (False, False, ["É", "é"]),
    ],
)
@pytest.mark.parametrize("reference", ["google", "huggingface"])
def test_switches(lowercase, strip_accents, expected, reference):
    tokenizer = BertTokenizer([*TOKENS, *"eEéÉ"], lowercase, strip_accents=strip_accents, reference=reference)
    assert tokens(tokenizer, "É é") == expected


def test_tokens_that_no_text_can_hold():
    """A blank inside, control characters, characters that stand in for others: never matched, and in nobody's way."""
    odd = ["new york", "\x01", "\x11", "\x11a", "a\xad", "\ue000", "##\ue000", "a\x00", "##", "\U000e0020", "y" * 300]
    for reference in ("google", "huggingface"):
        tokenizer = BertTokenizer([*TOKENS, *odd, "new", "york"], reference=reference)
        assert tokens(tokenizer, "new york \x01 \x11a a\xad a\x00b ## \U000e0020") == [
            *("new", "york", "a", "a", "ab", "[UNK]", "[UNK]")
        ]


def test_vocabulary_of_special_tokens_only():
    assert tokens(BertTokenizer(TOKENS[:4]), "a!") == ["[UNK]", "[UNK]"]


@pytest.mark.parametrize("reference", ["google", "huggingface"])
def test_token_longer_than_the_op_can_hold(reference):
    """Of 256 bytes; the limit of 100 characters makes one of 400 bytes impossible under HuggingFace's reference too."""
    token = "😀" * 65
    with pytest.raises(ValueError, match=r"hold no token of more than 256 bytes.*Token 21 is"):
        BertTokenizer([*TOKENS, token], reference=reference)
    assert tokens(BertTokenizer([*TOKENS, "😀" * 64], reference=reference), "😀" * 64) == ["😀" * 64]


# --- vocabulary and configuration


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
        "reference": "huggingface",
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


# --- what is not exact


def test_marks_whose_order_is_not_restored(minilm_vocabulary, google_tokenizer):
    """The one limit: spacing marks that Unicode's canonical order would swap keep the order of the text.

    Decomposition sorts neighbouring marks by their class; a table of single characters cannot. Marks of category Mn
    are dropped anyway, and bert-base's vocabularies hold none of the others, so that the word is [UNK] either way. A
    vocabulary has to hold two of these characters, of different classes, for a difference to show.
    """
    import unicodedata

    marks = [chr(c) for c in range(0x110000) if unicodedata.combining(chr(c)) and unicodedata.category(chr(c)) != "Mn"]
    assert not {character for token in minilm_vocabulary for character in token} & set(marks)
    swapped = ["x\u302e\u1b44", "x\U0001d16d\U0001d165"]
    vocabulary = [*TOKENS, "x", *(f"##{mark}" for mark in marks)]
    expected = google_tokenizer(vocabulary)
    found = BertTokenizer(vocabulary).tokenize(swapped).to_list()
    assert [sorted(row) for row in found] == [sorted(expected.ids(text)) for text in swapped]
    assert all(row != expected.ids(text) for row, text in zip(found, swapped, strict=True))
    assert BertTokenizer(minilm_vocabulary).tokenize(swapped).to_list() == [[100], [100]]
