import gc

import keras
import pytest

from keras_bert_layers.checkpoints import LoadReport, load_report
from keras_bert_layers.checkpoints.weights import reports


def test_reads_as_a_summary():
    report = LoadReport(source="here", loaded=("a",), newly_initialized=("b", "c"), ignored={"d": "a head"})
    assert str(report) == (
        "here: 1 tensor loaded, 2 weights newly initialized, 1 tensor ignored\n"
        "  newly initialized: b\n  newly initialized: c\n  ignored: d (a head)"
    )
    assert report.fresh == report.newly_initialized  # the older name


def test_a_reason_is_listed_once():
    ignored = {**{f"optimizer/{index}": "its state" for index in range(5)}, "d": "a head", "e": "a head"}
    report = LoadReport(source="here", ignored=ignored)
    assert str(report).splitlines()[1:] == [
        "  ignored: optimizer/0, optimizer/1, optimizer/2 and 2 more (its state)",
        "  ignored: d, e (a head)",
    ]
    assert len(report.ignored) == 7


def test_a_model_that_was_not_loaded_has_none(backbone):
    with pytest.raises(ValueError, match=r"`load_report`: `model` must come from `load_backbone` or `load_task`"):
        load_report(backbone)


def test_a_report_does_not_keep_its_model_alive():
    model = keras.layers.Dense(2)
    reports.remember_report(model, LoadReport(source="here"))
    assert load_report(model).source == "here"
    del model
    gc.collect()
    assert "here" not in {report.source for report in reports._reports.values()}
