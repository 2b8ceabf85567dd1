import pytest

from keras_bert_layers.visualization import MaskedTokens


@pytest.fixture
def masked_lm(backbone, preprocessor):
    from keras_bert_layers import BertMaskedLM

    return BertMaskedLM(backbone, preprocessor, top_k=3)


def test_tokens_are_the_models_answer(masked_lm):
    text = "a [MASK] film [MASK]."
    answer = masked_lm.answer([text])
    picture = MaskedTokens.from_model(masked_lm, text)
    assert picture.tokens == answer["token"][0].tolist()
    assert picture.probabilities == answer["probability"][0].tolist()
    assert picture.html().count("<mark") == 2
    # And a mask beyond the model's reach.
    picture = MaskedTokens.from_model(masked_lm, "a [MASK] " + "film " * 20 + "[MASK]")
    assert [len(row) for row in picture.tokens] == [3, 0]
    assert "Mask 2 is beyond what the model reads." in picture.html()


def test_bars_are_as_long_as_the_probabilities():
    page = MaskedTokens("[MASK]", [["a", "b"]], [[0.5, 0.001]]).html()
    assert 'points="0.0,0.0 64.0,0.0 64.0,12.0 0.0,12.0"' in page  # of 128
    assert "50 %" in page
    assert "0.1 %" in page


def test_wrong_arguments(masked_lm, backbone):
    with pytest.raises(ValueError, match=r"`MaskedTokens`: `text` must hold \[MASK\]. Received: text='a film'"):
        MaskedTokens.from_model(masked_lm, "a film")
    with pytest.raises(ValueError, match=r"`text` must hold \[MASK\]"):
        MaskedTokens("a film", [], [])
    with pytest.raises(TypeError, match="`model` must be a BertMaskedLM. Received"):
        MaskedTokens.from_model(backbone, "[MASK]")
    for tokens, probabilities in ([[], []], [[["a"]], [[0.5, 0.5]]]):
        with pytest.raises(
            ValueError, match="`tokens` must be one list for each of the 1 masks, with a probability for"
        ):
            MaskedTokens("[MASK]", tokens, probabilities)


def test_only_one_of_several_masks_has_a_number():
    one = MaskedTokens("It [MASK].", [["rains"]], [[0.7]]).html()
    assert "[MASK]</mark>" in one
    assert "Mask 1" not in one
    two = MaskedTokens("[MASK] [MASK].", [["it"], ["rains"]], [[0.7], [0.6]]).html()
    assert "[MASK] <small>2</small></mark>" in two
    assert "Mask 2" in two
