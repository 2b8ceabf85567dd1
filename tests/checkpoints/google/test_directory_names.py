import pytest

from keras_bert_layers.checkpoints.google.directory import ignored_reason


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("bert/pooler/dense/kernel/adam_m", "an optimizer's state"),
        ("output_weights/adam_v", "an optimizer's state"),
        ("bert/pooler/dense/kernel/ExponentialMovingAverage", "an optimizer's state"),
        ("global_step", "an optimizer's state"),
        ("cls/predictions/transform/dense/kernel", "a pretraining head"),
        ("cls/squad/output_weights", "a question answering head"),
        ("output_bias", "a classification head"),
        ("bert/pooler/dense/kernel", None),
        ("bert/global_step", None),
        ("bert/adam_m/kernel", None),
        ("", None),
    ],
)
def test_reasons(name, reason):
    assert ignored_reason(name) == reason
