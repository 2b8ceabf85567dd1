import re

import pytest

from keras_bert_layers._internal import keys


def test_mappings_only():
    keys.check_mapping("read", {})
    with pytest.raises(TypeError, match=r"`read`: `values` must be a dictionary\. Received: values=\[1\]\. Read the"):
        keys.check_mapping("read", [1])


def test_known_keys():
    keys.check_known("read", {"a": 1}, ("a", "b"))
    text = "`read`: every key must be known. Received: num_layer=2 (did you mean 'num_layers'?), x='y'. Remove those"
    with pytest.raises(ValueError, match=re.escape(text)):
        keys.check_known("read", {"num_layer": 2, "x": "y"}, ("num_layers",))


def test_required_keys():
    keys.check_present("read", {"a": 1}, ["a"])
    text = "`values` must have the keys ['b', 'c'], which have no default. Received: values=['a']."
    with pytest.raises(ValueError, match=re.escape(text)):
        keys.check_present("read", {"a": 1}, ["a", "b", "c"])


def test_only_values():
    keys.check_only("read", {"a": 1}, {"a": (1, 2), "b": (3,)})
    with pytest.raises(ValueError, match=r"`a` must be 1 or 2\. Received: a=3\. A reason\.$"):
        keys.check_only("read", {"a": 3}, {"a": (1, 2)}, {"a": "A reason."})
    with pytest.raises(ValueError, match=re.escape(keys.OTHER_MODEL)):
        keys.check_only("read", {"a": 3}, {"a": (1,)})
