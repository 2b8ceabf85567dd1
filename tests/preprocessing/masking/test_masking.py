import dataclasses
import re

import pytest

from keras_bert_layers.preprocessing import Masking


def test_fields_are_checked_and_fixed():
    masking = Masking(mask_selection_rate=0, mask_token_rate=1, random_token_rate=0)
    assert isinstance(masking.mask_selection_rate, float)
    with pytest.raises(dataclasses.FrozenInstanceError):
        masking.seed = 3
    with pytest.raises(ValueError, match=re.escape("`Masking`: `mask_selection_length` must be at least 1")):
        dataclasses.replace(masking, mask_selection_length=0)


def test_dictionary_makes_an_equal_object():
    masking = Masking(mask_selection_length=20, whole_words=True, longest_span=10, seed=3)
    assert Masking(**masking.to_dict()) == masking
    assert Masking.from_arguments("BertMaskedLM", None, masking.to_dict()) == masking
    assert Masking.from_arguments("BertMaskedLM", masking, {}) is masking
    assert Masking.from_arguments("BertMaskedLM", None, {}) == Masking()


@pytest.mark.parametrize(
    ("masking", "keywords", "error", "message"),
    [
        (None, {"seed": -1}, ValueError, "`BertMaskedLM`: `seed` must be at least 0. Received: seed=-1."),
        (None, {"seeds": 1, "a": 2}, TypeError, "`BertMaskedLM`: unexpected keyword argument `a`."),
        ({}, {}, TypeError, "`BertMaskedLM`: `masking` must be a Masking. Received: masking={}. Make one with"),
        (
            Masking(),
            {"seed": 1, "whole_words": True},
            TypeError,
            "`BertMaskedLM`: `masking` must be given without `seed`, `whole_words`. Received: masking=Masking(",
        ),
    ],
)
def test_errors_name_the_class_that_was_called(masking, keywords, error, message):
    with pytest.raises(error, match=re.escape(message)):
        Masking.from_arguments("BertMaskedLM", masking, keywords)
