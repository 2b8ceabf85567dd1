import keras

from keras_bert_layers._internal.keras_models import Untracked


def test_keras_neither_counts_nor_locks_the_value():
    layer = keras.layers.Dense(2)
    layer.kept = Untracked([keras.layers.Dense(3)])
    layer.kept.value[0].build((None, 4))
    layer.build((None, 4))
    assert [weight.shape for weight in layer.weights] == [(4, 2), (2,)]
    layer.kept.value.append(None)  # a tracked list is locked by now
    layer.kept.value = None
