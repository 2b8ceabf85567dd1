"""Keras's optimizers in NumPy, float64, each written from its paper and from the definition in Keras's documentation.

`update(weight, gradient, state, step, rate=…)` returns the weight after one step; steps count from 1. The options have
the names and the defaults of Keras. Where Keras's definition and the paper differ, Keras's holds.
"""

from collections import defaultdict

import numpy as np


def sgd(weight, gradient, state, step, *, rate, momentum=0.0, nesterov=False):
    """Sutskever et al. 2013."""
    state["m"] = momentum * state["m"] - rate * gradient
    return weight + (momentum * state["m"] - rate * gradient if nesterov else state["m"])


def rmsprop(weight, gradient, state, step, *, rate, rho=0.9, momentum=0.0, epsilon=1e-7, centered=False):
    """Tieleman and Hinton 2012, lecture 6.5; centered: Graves 2013, arXiv:1308.0850, equations 38 to 41."""
    state["v"] = rho * state["v"] + (1 - rho) * gradient**2
    state["mean"] = rho * state["mean"] + (1 - rho) * gradient
    variance = state["v"] - (state["mean"] ** 2 if centered else 0)
    state["m"] = momentum * state["m"] + rate * gradient / np.sqrt(variance + epsilon)
    return weight - state["m"]


def adam(weight, gradient, state, step, *, rate, beta_1=0.9, beta_2=0.999, epsilon=1e-7, amsgrad=False):
    """Kingma and Ba 2014, arXiv:1412.6980, with the epsilon of the last lines of section 2; Reddi et al. 2018."""
    state["m"] = beta_1 * state["m"] + (1 - beta_1) * gradient
    state["v"] = beta_2 * state["v"] + (1 - beta_2) * gradient**2
    state["largest"] = np.maximum(state["largest"], state["v"])
    second = state["largest"] if amsgrad else state["v"]
    corrected_rate = rate * np.sqrt(1 - beta_2**step) / (1 - beta_1**step)
    return weight - corrected_rate * state["m"] / (np.sqrt(second) + epsilon)


def adamax(weight, gradient, state, step, *, rate, beta_1=0.9, beta_2=0.999, epsilon=1e-7):
    """Kingma and Ba 2014, algorithm 2; the epsilon is Keras's."""
    state["m"] = beta_1 * state["m"] + (1 - beta_1) * gradient
    state["u"] = np.maximum(beta_2 * state["u"], np.abs(gradient))
    return weight - rate / (1 - beta_1**step) * state["m"] / (state["u"] + epsilon)


def nadam(weight, gradient, state, step, *, rate, beta_1=0.9, beta_2=0.999, epsilon=1e-7):
    """Dozat 2015, algorithm 8, with the momentum schedule of its section 3."""
    now, after = (beta_1 * (1 - 0.5 * 0.96**time) for time in (step, step + 1))
    product = np.prod([beta_1 * (1 - 0.5 * 0.96**time) for time in range(1, step + 1)])
    state["m"] = beta_1 * state["m"] + (1 - beta_1) * gradient
    state["v"] = beta_2 * state["v"] + (1 - beta_2) * gradient**2
    first = after * state["m"] / (1 - product * after) + (1 - now) * gradient / (1 - product)
    return weight - rate * first / (np.sqrt(state["v"] / (1 - beta_2**step)) + epsilon)


def adagrad(weight, gradient, state, step, *, rate, initial_accumulator_value=0.1, epsilon=1e-7):
    """Duchi et al. 2011; the sum starts at 0.1 in Keras."""
    state["sum"] = state["sum"] + gradient**2
    return weight - rate * gradient / np.sqrt(initial_accumulator_value + state["sum"] + epsilon)


def adadelta(weight, gradient, state, step, *, rate, rho=0.95, epsilon=1e-7):
    """Zeiler 2012, arXiv:1212.5701, algorithm 1; the rate is Keras's."""
    state["v"] = rho * state["v"] + (1 - rho) * gradient**2
    change = -np.sqrt(state["d"] + epsilon) / np.sqrt(state["v"] + epsilon) * gradient
    state["d"] = rho * state["d"] + (1 - rho) * change**2
    return weight + rate * change


def ftrl(
    weight,
    gradient,
    state,
    step,
    *,
    rate,
    initial_accumulator_value=0.1,
    l1_regularization_strength=0.0,
    l2_regularization_strength=0.0,
    beta=0.0,
):
    """McMahan et al. 2013, algorithm 1; Keras counts the second regularization twice."""
    before = initial_accumulator_value + state["n"]
    state["n"] = state["n"] + gradient**2
    after = initial_accumulator_value + state["n"]
    state["z"] = state["z"] + gradient - (np.sqrt(after) - np.sqrt(before)) / rate * weight
    beyond = np.sign(state["z"]) * np.maximum(np.abs(state["z"]) - l1_regularization_strength, 0)
    return -beyond / ((beta + np.sqrt(after)) / rate + 2 * l2_regularization_strength)


def lion(weight, gradient, state, step, *, rate, beta_1=0.9, beta_2=0.99):
    """Chen et al. 2023, arXiv:2302.06675, algorithm 2."""
    change = np.sign(beta_1 * state["m"] + (1 - beta_1) * gradient)
    state["m"] = beta_2 * state["m"] + (1 - beta_2) * gradient
    return weight - rate * change


def lamb(weight, gradient, state, step, *, rate, beta_1=0.9, beta_2=0.999, epsilon=1e-7):
    """You et al. 2019, arXiv:1904.00962, algorithm 2, where phi is the identity."""
    state["m"] = beta_1 * state["m"] + (1 - beta_1) * gradient
    state["v"] = beta_2 * state["v"] + (1 - beta_2) * gradient**2
    ratio = state["m"] / (1 - beta_1**step) / (np.sqrt(state["v"] / (1 - beta_2**step)) + epsilon)
    norms = np.linalg.norm(weight), np.linalg.norm(ratio)
    return weight - rate * (norms[0] / norms[1] if all(norms) else 1.0) * ratio


def google_adamw(weight, gradient, state, step, *, rate, decay, beta_1=0.9, beta_2=0.999, epsilon=1e-6):
    """`AdamWeightDecayOptimizer` in google-research/bert `optimization.py`."""
    state["m"] = beta_1 * state["m"] + (1 - beta_1) * gradient
    state["v"] = beta_2 * state["v"] + (1 - beta_2) * gradient**2
    return weight - rate * (state["m"] / (np.sqrt(state["v"]) + epsilon) + decay * weight)


def decayed_adam(weight, gradient, state, step, *, rate, decay, beta_1=0.9, beta_2=0.999, epsilon=1e-8):
    """Loshchilov and Hutter 2017, arXiv:1711.05101, algorithm 2: epsilon is added after the bias correction."""
    state["m"] = beta_1 * state["m"] + (1 - beta_1) * gradient
    state["v"] = beta_2 * state["v"] + (1 - beta_2) * gradient**2
    ratio = state["m"] / (1 - beta_1**step) / (np.sqrt(state["v"] / (1 - beta_2**step)) + epsilon)
    return weight - rate * (ratio + decay * weight)


def decayed_lamb(weight, gradient, state, step, *, rate, decay, adapts=True, beta_1=0.9, beta_2=0.999, epsilon=1e-6):
    """You et al. 2019, algorithm 2, with its decay inside of the norm; without the ratio where a weight is left out."""
    state["m"] = beta_1 * state["m"] + (1 - beta_1) * gradient
    state["v"] = beta_2 * state["v"] + (1 - beta_2) * gradient**2
    ratio = state["m"] / (1 - beta_1**step) / (np.sqrt(state["v"] / (1 - beta_2**step)) + epsilon)
    change = ratio + decay * weight
    norms = np.linalg.norm(weight), np.linalg.norm(change)
    return weight - rate * (norms[0] / norms[1] if adapts and all(norms) else 1.0) * change


def adafactor(
    weight,
    gradient,
    state,
    step,
    *,
    rate,
    beta_2_decay=-0.8,
    epsilon_1=1e-30,
    epsilon_2=1e-3,
    clip_threshold=1.0,
):
    """Shazeer and Stern 2018, arXiv:1804.04235, algorithms 4 and 5."""
    beta_2 = 1 - step**beta_2_decay
    square = gradient**2 + epsilon_1
    if weight.ndim == 2:
        state["r"] = beta_2 * state["r"] + (1 - beta_2) * square.mean(axis=1)
        state["c"] = beta_2 * state["c"] + (1 - beta_2) * square.mean(axis=0)
        second = np.outer(state["r"], state["c"]) / state["r"].mean()
    else:
        second = state["v"] = beta_2 * state["v"] + (1 - beta_2) * square
    change = gradient / np.sqrt(second)
    change /= max(1.0, _root_mean_square(change) / clip_threshold)
    return weight - max(epsilon_2, _root_mean_square(weight)) * min(rate, 1 / np.sqrt(step)) * change


def muon(weight, gradient, state, step, *, rate, exclude_embeddings=True, momentum=0.95, rms_rate=0.2):
    """Jordan et al. 2024, kellerjordan.github.io/posts/muon, scaled as in Liu et al. 2025, arXiv:2502.16982.

    Embeddings, and weights that are not matrices, are trained with Adam.
    """
    if weight.ndim != 2 or exclude_embeddings:
        return adam(weight, gradient, state, step, rate=rate)
    state["m"] = momentum * state["m"] + gradient
    change = gradient + momentum * state["m"]  # Nesterov's
    change = change / (np.linalg.norm(change) + 1e-7)
    for _ in range(5):  # Newton and Schulz
        square = change.T @ change
        change = 3.4445 * change + change @ (-4.7750 * square + 2.0315 * square @ square)
    return weight - rate * rms_rate * np.sqrt(max(weight.shape)) * change


def schedule_free_adamw(weight, gradient, state, step, *, rate, beta_1=0.9, beta_2=0.999, epsilon=1e-8):
    """Defazio et al. 2024, arXiv:2405.15682, algorithm 1, where the rate is constant; `weight` is its y."""
    z, x = (state["z"], state["x"]) if step > 1 else (weight, weight)
    state["v"] = beta_2 * state["v"] + (1 - beta_2) * gradient**2
    state["z"] = z - rate * gradient / (np.sqrt(state["v"] / (1 - beta_2**step)) + epsilon)
    state["x"] = (1 - 1 / step) * x + state["z"] / step
    return (1 - beta_1) * state["z"] + beta_1 * state["x"]


def _root_mean_square(values):
    return np.sqrt(np.mean(values**2))


UPDATES = {
    "Adadelta": adadelta,
    "Adafactor": adafactor,
    "Adagrad": adagrad,
    "Adam": adam,
    "AdamW": adam,
    "Adamax": adamax,
    "Ftrl": ftrl,
    "Lamb": lamb,
    "Lion": lion,
    "Muon": muon,
    "Nadam": nadam,
    "RMSprop": rmsprop,
    "SGD": sgd,
    "ScheduleFreeAdamW": schedule_free_adamw,
}
DECAYS = {"AdamW": 0.004, "Muon": 0.004}


class NumpyOptimizer:
    """An optimizer of `UPDATES` over several weights, with the decay and the clipping that all of Keras's have."""

    def __init__(self, name, rate, *, weight_decay=None, clipnorm=None, global_clipnorm=None, **options):
        self.update, self.rate, self.options = UPDATES[name], rate, options
        self.weight_decay = DECAYS.get(name, 0.0) if weight_decay is None else weight_decay
        self.clipnorm, self.global_clipnorm = clipnorm or np.inf, global_clipnorm or np.inf
        self.states, self.step = defaultdict(lambda: defaultdict(float)), 0

    def apply(self, gradients, weights):
        """The weights after one step."""
        self.step += 1
        norm = np.sqrt(sum(np.sum(gradient**2) for gradient in gradients))
        shares = [
            min(1, self.clipnorm / np.linalg.norm(gradient), self.global_clipnorm / norm) for gradient in gradients
        ]
        return [
            self.update(
                weight * (1 - self.rate * self.weight_decay),
                gradient * share,
                self.states[index],
                self.step,
                rate=self.rate,
                **self.options,
            )
            for index, (weight, gradient, share) in enumerate(zip(weights, gradients, shares, strict=True))
        ]
