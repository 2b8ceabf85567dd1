import sys
import unicodedata

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.tokens.markers import ROLES, SPECIAL_TOKENS, WHITESPACE, any_of, contains


def test_whitespace_is_that_of_unicode():
    """`str.isspace` also has four separators of information, U+001C to U+001F."""
    spaces = {chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace()} - {*"\x1c\x1d\x1e\x1f"}
    assert set(WHITESPACE) == spaces
    assert {unicodedata.category(c) for c in WHITESPACE} == {"Cc", "Zs", "Zl", "Zp"}


def test_longest_of_several_strings():
    pattern = any_of(["a", "ab", "a.c", "b"])
    assert tf.strings.regex_replace("abc a.c axc", pattern, "_", replace_global=False).numpy() == b"_c a.c axc"
    assert tf.strings.regex_replace("abc a.c axc", pattern, "_").numpy() == b"_c _ _xc"


def test_contains_also_beside_bytes_that_are_not_utf8():
    texts = tf.constant([b"\xffab\n\xe4", b"a b", b"", b"ab"])
    assert contains(texts, "ab|c").numpy().tolist() == [True, False, False, True]


def test_special_tokens():
    assert SPECIAL_TOKENS == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    assert list(ROLES) == ["pad", "unknown", "start", "separator", "mask"]
