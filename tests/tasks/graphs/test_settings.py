"""Settings of tasks, which drop traced functions."""

import pytest

from keras_bert_layers.tasks.graphs.settings import Setting


def test_a_setting_is_checked_and_drops_the_traces():
    def positive(owner, name, value):
        if value <= 0:
            raise ValueError(f"`{owner}`: `{name}` must be positive")
        return float(value)

    class Holder:
        kind = "a"

    class Owner:
        size = Setting(positive, doc="How large it is.")
        kind = Setting(holder="holder")
        num_dropped = 0

        def __init__(self):
            self.holder = Holder()

        def forget_traces(self):
            self.num_dropped += 1

    owner = Owner()
    owner.size = 3
    assert (owner.size, type(owner.size), owner.num_dropped) == (3.0, float, 1)
    with pytest.raises(ValueError, match="`Owner`: `size` must be positive"):
        owner.size = -1
    assert (owner.size, owner.num_dropped) == (3.0, 1)
    assert owner.kind == "a"
    owner.kind = "b"
    assert (owner.holder.kind, owner.num_dropped) == ("b", 2)
    assert Owner.size.__doc__ == "How large it is."
