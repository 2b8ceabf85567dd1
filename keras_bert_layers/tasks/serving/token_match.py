"""`TokenMatch`: a token of a query, and the token of a document that it matches."""

from typing import NamedTuple


class TokenMatch(NamedTuple):
    """A token of a query, and the token of a document that is most similar to it.

    Attributes:
        token: the query's token, as in the vocabulary.
        document_token: the document's token.
        score: their cosine, which is what the token adds to the score.
        start: the byte of the document, in UTF-8, at which its token starts; -1 for a special token or the prompt.
        end: the byte after its last one.
    """

    token: str
    document_token: str
    score: float
    start: int
    end: int
