import gzip
import re
from pathlib import Path

import pytest

from keras_bert_layers.preprocessing.word_piece import vocabulary
from keras_bert_layers.preprocessing.word_piece.vocabulary import load_vocabulary

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "##b", "ü"]


@pytest.fixture
def write(tmp_path):
    """A function that writes bytes to a vocab.txt and returns its path."""

    def write(content):
        path = tmp_path / "vocab.txt"
        path.write_bytes(content)
        return path

    return write


def joined(tokens, end="\n"):
    return end.join(tokens).encode()


def refuses(source, error, *parts):
    with pytest.raises(error) as caught:
        load_vocabulary(source)
    text = str(caught.value)
    assert text.startswith("`BertTokenizer`: `vocabulary` must ")
    assert "Received: vocabulary=" in text
    for part in parts:
        assert part in text
    return text


@pytest.mark.parametrize("source", [TOKENS, tuple(TOKENS)])
def test_list(source):
    tokens = load_vocabulary(source)
    assert tokens == TOKENS
    assert tokens is not source


@pytest.mark.parametrize(
    "content",
    [
        joined(TOKENS),
        joined(TOKENS) + b"\n",
        joined(TOKENS, "\r\n"),
        joined(TOKENS, "\r\n") + b"\r\n",
        b"\xef\xbb\xbf" + joined(TOKENS),
    ],
)
@pytest.mark.parametrize("convert", [str, Path])
def test_file(content, convert, write):
    assert load_vocabulary(convert(write(content))) == TOKENS


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"])
def test_only_line_feeds_end_a_line(separator, write):
    tokens = [*TOKENS, f"x{separator}y", f"##{separator}"]
    expected = [*tokens[:-1], tokens[-1] if separator == "\x1c" else "##"]  # no whitespace at the end
    assert load_vocabulary(write(joined(tokens) + b"\n")) == expected


def test_mask_is_optional():
    assert "[MASK]" not in load_vocabulary(TOKENS)


@pytest.mark.parametrize("missing", vocabulary.REQUIRED_TOKENS)
def test_missing_special_token(missing):
    refuses([token for token in TOKENS if token != missing], ValueError, f"Add {missing}:", "<6 tokens>")


def test_missing_special_tokens(write):
    path = write(b"a\nb\n")
    refuses(path, ValueError, "Add [PAD] and [UNK] and [CLS] and [SEP]", repr(str(path)))


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (
            joined([*TOKENS, "a"]),
            "should hold each token once.*'a' is on line 5 and on line 8. Of equal tokens the last",
        ),
        (joined(TOKENS) + b"\na\r\n", "'a' is on line 5 and on line 8"),
        (joined([*TOKENS, "a", "a", "a", "a", ""]), "line 5.*line 8.*line 9 and on line 11 and 1 more"),
        (joined([*TOKENS, "", "z"]), "line 8 is empty"),
        (joined(TOKENS) + b"\n\n", "line 8 is empty"),
    ],
)
def test_doubtful_lines_load_with_a_warning(content, match, write):
    path = write(content)
    with pytest.warns(UserWarning, match=match):
        tokens = load_vocabulary(path)
    assert tokens == [line.removesuffix("\r") for line in content.decode().removesuffix("\n").split("\n")]
    assert load_vocabulary(path, warn=False) == tokens


def test_doubtful_entries_load_with_a_warning():
    with pytest.warns(UserWarning, match="<9 tokens>. entry 0 is empty, 'ü' is on entry 7 and on entry 8"):
        assert load_vocabulary(["", *TOKENS, "ü"]) == ["", *TOKENS, "ü"]


def test_whitespace_after_a_token(write):
    """The library `tokenizers` leaves it out, and so does Google's code."""
    assert load_vocabulary(write(joined([*TOKENS, "x \t", "y\u3000", "z\x1c", "\u2028"]))) == [
        *TOKENS,
        "x",
        "y",
        "z\x1c",
        "\u2028",
    ]


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
def test_empty_file(content, write):
    refuses(write(content), ValueError, "hold at least one token")


def test_empty_list():
    refuses([], ValueError, "hold at least one token", "<0 tokens>")


def test_not_utf8(write):
    refuses(write(joined(TOKENS) + b"\ncaf\xe9\n"), ValueError, "be UTF-8", r"Line 8 holds b'caf\xe9'")


def test_utf16(write):
    refuses(write("\n".join(TOKENS).encode("utf-16")), ValueError, "be UTF-8", "Line 1 holds")


def test_no_such_file(tmp_path):
    path = tmp_path / "absent.txt"
    refuses(path, FileNotFoundError, repr(str(path)), "no such file")


def test_directory(tmp_path):
    refuses(tmp_path, IsADirectoryError, "vocab.txt", "Name the file")


@pytest.mark.parametrize("entry", [7, None, b"a"])
def test_entry_that_is_not_a_string(entry):
    refuses([*TOKENS, entry], TypeError, "hold strings only", f"Entry 7 is {entry!r}")


def test_entry_that_is_not_unicode_text():
    refuses([*TOKENS, "a\ud800"], ValueError, "be Unicode text", r"Entry 7 is 'a\ud800'")


@pytest.mark.parametrize("source", [7, None, b"vocab.txt", {"a": 0}])
def test_wrong_type(source):
    refuses(
        source, TypeError, "be a list of tokens or the path of a vocab.txt", re.escape(repr(source)).replace("\\", "")
    )


@pytest.mark.parametrize(("name", "size"), [("bert-base-uncased.txt", 30522), ("bert-base-cased.txt", 28996)])
def test_published_vocabularies(name, size, shared_data):
    tokens = load_vocabulary(shared_data / "vocab" / name)
    assert len(tokens) == size
    assert tokens[0] == "[PAD]"


def test_published_multilingual_vocabulary(shared_data, write):
    content = gzip.decompress((shared_data / "vocab/bert-base-multilingual-cased.txt.gz").read_bytes())
    assert len(load_vocabulary(write(content))) == 119547


def test_minilm_vocabulary(minilm):
    assert len(load_vocabulary(minilm / "vocab.txt")) == 30522
