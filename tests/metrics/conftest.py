"""Fixtures of the metric tests: the contract of every metric."""

import importlib.util
from pathlib import Path

import pytest

_PATH = Path(__file__).with_name("metric_contract.py")
_SPEC = importlib.util.spec_from_file_location("keras_bert_layers_tests_metric_contract", _PATH)
_CONTRACT = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_CONTRACT)


@pytest.fixture(scope="session")
def check_metric():
    """The contract of every metric; see `metric_contract.check_metric`."""
    return _CONTRACT.check_metric


@pytest.fixture(scope="session")
def stream():
    """The results of many cases, fast; see `metric_contract.stream`."""
    return _CONTRACT.stream
