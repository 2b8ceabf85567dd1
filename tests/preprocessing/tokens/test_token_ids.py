import pytest

from keras_bert_layers.preprocessing import AddedToken
from keras_bert_layers.preprocessing.tokens.token_ids import TokenIds


def test_added_tokens_follow_the_vocabulary():
    ids = TokenIds(["a", "b", "c"], [AddedToken("x"), AddedToken("b"), AddedToken("y")])
    assert ids.tokens == ["a", "b", "c", "x", "y"]
    assert [ids.id_of(token) for token in ids.tokens] == [0, 1, 2, 3, 4]
    assert [ids.token_of(token_id) for token_id in range(5)] == ids.tokens
    assert "x" in ids
    assert "z" not in ids


def test_of_equal_tokens_the_last_counts():
    """New ids follow the number of different tokens, and so replace names that no text can match."""
    ids = TokenIds(["a", "b", "a", "c"], [AddedToken("x")])
    assert ids.id_of("a") == 2
    assert ids.id_of("x") == 3
    assert ids.tokens == ["a", "b", "a", "x"]


def test_errors():
    ids = TokenIds(["a", "b"], owner="Some")
    with pytest.raises(
        ValueError, match="`Some`: `token` must be a token of the vocabulary. Received: token='z'. Cure"
    ):
        ids.id_of("z", "Cure.")
    for wrong in (-1, 2):
        with pytest.raises(ValueError, match="`Some`: `token_id` must be at least 0 and less than 2, the size"):
            ids.token_of(wrong)


@pytest.mark.parametrize("special", [True, False])
def test_normalized_is_the_opposite_of_special(special):
    token = AddedToken("a", special=special)
    assert token.normalized != special
    assert AddedToken("a", normalized=special, special=special).normalized == special
    assert AddedToken.of(token) is token
    assert AddedToken.of(token.get_config()) == token
    assert AddedToken.of("a") == AddedToken("a")


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"content": ""}, ValueError, "`content` must hold text"),
        ({"content": "a\0"}, ValueError, "`content` must hold text"),
        ({"content": "a", "lstrip": 1}, TypeError, "`lstrip` must be True or False"),
    ],
)
def test_wrong_tokens(arguments, error, match):
    with pytest.raises(error, match=match):
        AddedToken(**arguments)
