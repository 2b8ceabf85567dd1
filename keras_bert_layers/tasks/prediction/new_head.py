"""`NewHead`: warns of the answers of a head that was never trained."""

import warnings
from collections.abc import Sequence

import keras


class NewHead:
    """Warns if the weights of a new head are still the ones that it was made with.

    Whatever gives them others, such as `fit`, a training loop of one's own, `load_weights` and `set_weights`, makes the
    head one that may answer.

    Args:
        owner: the task's class.
        weights: the weights of the head, newly initialized.
        source: what the task was loaded from, for the warning.
    """

    def __init__(self, owner: str, weights: Sequence[keras.Variable], source: str):
        layers = ", ".join(dict.fromkeys(f"`{weight.path.split('/')[0]}`" for weight in weights))
        self._text = (
            f"`{owner}`: its head, {layers}, is new: {source} has none for this task, its weights are random, and it "
            "was not trained, so its answers mean nothing. Train it with `fit`, or load a checkpoint with such a head. "
            "This warning is shown once."
        )
        self._initial = [(weight, _fingerprint(weight)) for weight in weights]

    def look(self) -> None:
        """Examines the weights before the first answer; a UserWarning names the task, the head and the cure."""
        if all(_fingerprint(weight) == before for weight, before in self._initial):
            warnings.warn(self._text, stacklevel=4)


def _fingerprint(weight: keras.Variable) -> int:
    return hash(weight.numpy().tobytes())
