"""An independent reading of google-research/bert's `tokenization.py` in plain Python, for tests.

Written from the algorithm, with Python's own Unicode database, to be compared with `BertTokenizer`. Where the
original loops over characters, `str.translate` with a lazily filled table does the same in less time.
"""

import unicodedata
from functools import lru_cache

MAX_WORD_CHARACTERS = 200
CHINESE_BLOCKS = [
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2F800, 0x2FA1F),
]
CHINESE = frozenset(code for first, last in CHINESE_BLOCKS for code in range(first, last + 1))


class Lazy(dict):
    """A translation table whose entries are made at their first use."""

    def __init__(self, rule):
        super().__init__()
        self.rule = rule

    def __missing__(self, code):
        self[code] = result = self.rule(chr(code))
        return result


def cleaned(character):
    category = unicodedata.category(character)
    if character in "\t\n\r" or category == "Zs":
        return " "
    if ord(character) in (0, 0xFFFD) or category in ("Cc", "Cf"):
        return None
    return character


def chinese_apart(character):
    return f" {character} " if ord(character) in CHINESE else character


def without_mark(character):
    return None if unicodedata.category(character) == "Mn" else character


def punctuation_apart(character):
    is_symbol = character in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
    return f" {character} " if is_symbol or unicodedata.category(character)[0] == "P" else character


CLEANED, CHINESE_APART = Lazy(cleaned), Lazy(chinese_apart)
WITHOUT_MARK, PUNCTUATION_APART = Lazy(without_mark), Lazy(punctuation_apart)


class GoogleTokenizer:
    """`FullTokenizer`, with the switches that transformers added to it."""

    def __init__(self, vocabulary, lowercase=True, strip_accents=None, split_chinese=True):
        self.ids_of = {token: token_id for token_id, token in enumerate(vocabulary)}
        self.lowercase = lowercase
        self.strip_accents = lowercase if strip_accents is None else strip_accents
        self.split_chinese = split_chinese
        # A word with a character that no token holds cannot be matched; saves the search for most of Unicode.
        self.alphabet = {character for token in vocabulary for character in token}
        self.word_ids = lru_cache(maxsize=2**16)(self.match)
        self.pieces_of = lru_cache(maxsize=2**16)(lambda word: self.normalized(word).split())

    def alike(self):
        """A table of `str.translate` that changes no ids: one character for all that no rule and no token knows.

        These are unassigned or private, without case, accent or class: seven of eight scalar values.
        """
        one, known = ord("\U0010fffd"), CHINESE.union(map(ord, self.alphabet))
        return {
            code: one
            for code in range(0x110000)
            if unicodedata.category(chr(code)) in ("Cn", "Co") and code not in known
        }

    def words(self, text):
        """What `BasicTokenizer` makes of a text."""
        if isinstance(text, bytes):
            text = text.decode("utf-8", "ignore")
        text = text.translate(CLEANED)
        if self.split_chinese:
            text = text.translate(CHINESE_APART)
        return [piece for word in text.split() for piece in self.pieces_of(word)]

    def normalized(self, word):
        if self.lowercase:
            word = word.lower()
        if self.strip_accents:
            word = unicodedata.normalize("NFD", word).translate(WITHOUT_MARK)
        return word.translate(PUNCTUATION_APART)

    def match(self, word):
        """What `WordpieceTokenizer` makes of a word: ids."""
        unknown = [self.ids_of["[UNK]"]]
        if len(word) > MAX_WORD_CHARACTERS or not self.alphabet.issuperset(word):
            return unknown
        ids, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                token_id = self.ids_of.get(("##" if start else "") + word[start:end])
                if token_id is not None:
                    break
            else:
                return unknown
            ids.append(token_id)
            start = end
        return ids

    def ids(self, text):
        return [token_id for word in self.words(text) for token_id in self.word_ids(word)]
