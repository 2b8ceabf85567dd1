import numpy as np
import pytest

from keras_bert_layers.preprocessing import TokenDocuments
from keras_bert_layers.preprocessing.rows import token_documents


def test_from_text(tokenizer, monkeypatch):
    """Empty sentences and documents are left out, also where they are at the border of a batch."""
    text = [["w0 w1", "", "w2"], [], ["", " "], ["w3"], ["w4 w5 w6", "w7"]]
    whole = TokenDocuments.from_text(text, tokenizer)
    assert whole.ids.tolist() == list(range(4, 12))
    assert whole.sentence_bounds.tolist() == [0, 2, 3, 4, 7, 8]
    assert whole.document_bounds.tolist() == [0, 2, 3, 5]
    assert whole.token_bounds.tolist() == [0, 3, 4, 8]
    assert len(whole) == 3
    assert (whole.ids.dtype, whole.sentence_bounds.dtype) == (np.int32, np.int64)
    monkeypatch.setattr(token_documents, "SENTENCES_AT_ONCE", 2)
    parts = TokenDocuments.from_text(text, tokenizer)
    for field in ("ids", "sentence_bounds", "document_bounds"):
        np.testing.assert_array_equal(getattr(parts, field), getattr(whole, field))


@pytest.mark.parametrize("text", [[], [[]], [[""]]])
def test_no_tokens(text, tokenizer):
    documents = TokenDocuments.from_text(text, tokenizer)
    assert (len(documents), documents.ids.tolist(), documents.sentence_bounds.tolist()) == (0, [], [0])


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ("a text", "`Reader`: `documents` must be a list of lists of sentences"),
        ([["a"], "b"], "`Reader`: a document must be a list of sentences. Received: 'b' as document 1"),
        ([["a"], ["b", 3]], "`Reader`: sentences must be strings. Received: 3 as sentence 1 of document 1"),
    ],
)
def test_errors(documents, message, tokenizer):
    with pytest.raises(TypeError, match=message):
        TokenDocuments.from_text(documents, tokenizer, owner="Reader")
