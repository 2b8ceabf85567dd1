"""`examples/serving/limits.py`: defaults, variables and messages."""

import pytest

from keras_bert_layers.export.json_request import RequestError


@pytest.fixture
def limits(import_example):
    return import_example("limits")


def test_variables(limits, monkeypatch):
    assert limits.Limits.from_environment() == limits.Limits()
    monkeypatch.setenv("MAX_ROWS", "7")
    monkeypatch.setenv("REQUEST_SECONDS", "0.5")
    assert limits.Limits.from_environment() == limits.Limits(rows=7, seconds=0.5)


@pytest.mark.parametrize("value", ["0", "-1"])
def test_a_limit_of_nothing_is_refused(limits, monkeypatch, value):
    monkeypatch.setenv("MAX_BATCH_TOKENS", value)
    with pytest.raises(ValueError, match=f"MAX_BATCH_TOKENS must be larger than 0. Received: {value}"):
        limits.Limits.from_environment()


def test_every_limit_has_a_variable(limits):
    assert set(limits.VARIABLES) == set(limits.Limits.__dataclass_fields__)


def test_the_message_names_the_limit_and_what_came(limits):
    with pytest.raises(RequestError) as caught:
        limits.Limits(rows=7).check("rows", 8, "the rows of a request")
    assert str(caught.value) == "the rows of a request must be at most 7 (MAX_ROWS). Received: 8"
    assert (caught.value.status, caught.value.code) == (400, "too_many_rows")
    limits.Limits(rows=7).check("rows", 7, "the rows of a request")
