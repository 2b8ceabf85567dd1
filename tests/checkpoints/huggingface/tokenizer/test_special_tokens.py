"""Special tokens in several lists or files: the one that counts is the same as in transformers 5."""

import numpy as np
import pytest

from keras_bert_layers import load_tokenizer

pytestmark = pytest.mark.peers

FIVE = {f"{role}_token": f"[{role.upper()}]" for role in ("pad", "unk", "cls", "sep", "mask")}
ONE, OTHER, NAMED = ["un"], ["bad"], {"film_token": "bad"}


@pytest.mark.parametrize("has_json", [True, False])
@pytest.mark.parametrize(
    ("config", "tokens_map"),
    [
        ({"additional_special_tokens": ONE, "extra_special_tokens": {}}, None),
        ({"additional_special_tokens": ONE, "extra_special_tokens": []}, None),
        ({"additional_special_tokens": ONE, "extra_special_tokens": OTHER}, None),
        ({"additional_special_tokens": ONE, "extra_special_tokens": NAMED}, None),
        ({"additional_special_tokens": []}, {"additional_special_tokens": ONE}),
        ({"additional_special_tokens": OTHER}, {"additional_special_tokens": ONE}),
        ({"extra_special_tokens": OTHER}, {"extra_special_tokens": ONE}),
        ({"extra_special_tokens": {}}, {"additional_special_tokens": ONE}),
        ({}, {"additional_special_tokens": ONE}),
    ],
)
def test_lists_are_followed_as_in_transformers(transformers, checkpoint, huggingface, has_json, config, tokens_map):
    huggingface.write_json(checkpoint / "tokenizer_config.json", {"do_lower_case": True, **FIVE, **config})
    if tokens_map is not None:
        huggingface.write_json(checkpoint / "special_tokens_map.json", {**FIVE, **tokens_map})
    if has_json:
        huggingface.write_json(checkpoint / "tokenizer.json", huggingface.tokenizer_json())
    text = "a goodfilm unhappyness badful"
    theirs = transformers.AutoTokenizer.from_pretrained(checkpoint)(text, add_special_tokens=False)["input_ids"]
    np.testing.assert_array_equal(np.asarray(load_tokenizer(checkpoint)([text])[0]), theirs)
