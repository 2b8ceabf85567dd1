"""Fixtures of the layer tests: the contract that every layer keeps."""

import pytest


@pytest.fixture(scope="session")
def check_layer():
    """`layer_contract.check_layer`."""
    import layer_contract

    return layer_contract.check_layer


@pytest.fixture
def draw():
    """A function that draws floats of a shape; the same ones in every test."""
    import numpy as np

    generator = np.random.default_rng(5)
    return lambda *shape: generator.normal(size=shape).astype("float32")


@pytest.fixture
def named_weights():
    """A function: layer, name -> {path under the name: array}, all weights replaced by draws of visible size."""
    import numpy as np

    def randomise(layer, name):
        generator = np.random.default_rng(7)
        values = {}
        for weight in layer.weights:
            weight.assign(generator.normal(scale=0.4, size=weight.shape))
            path = weight.path.split(f"{layer.name}/", 1)[-1]
            values[f"{name}/{path}"] = np.asarray(weight)
        return values

    return randomise
