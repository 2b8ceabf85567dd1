"""The arithmetic of the comparison, and its tables and goals, on made-up figures."""

from __future__ import annotations

import pytest
from comparison.arithmetic import Sizes, best_of, matrix_product_operations, median_ratio, quantile
from comparison.contender_error import ContenderError
from comparison.goals import SENTENCES, Goal, judge
from comparison.lines import (
    BFLOAT16,
    CTRANSLATE2,
    FLOAT32,
    INT8,
    KERAS_HUB,
    ONNX,
    PREDICT,
    SAVED_MODEL,
    TORCH,
    VECTORS,
    Line,
)
from comparison.plan import QUICK
from comparison.turns import series, take_turns

OURS, OURS_HALF, HUB, ORT = (
    f"{name}, {dtype}"
    for (name, _), dtype in (
        (SAVED_MODEL, FLOAT32),
        (SAVED_MODEL, BFLOAT16),
        (KERAS_HUB, FLOAT32),
        (ONNX, FLOAT32),
    )
)


def test_matrix_product_operations_count_every_product_of_one_layer():
    hidden, wide, length = 3, 5, 7
    products = [
        *[(length, hidden, hidden)] * 4,  # query, key, value, output
        (length, hidden, wide),
        (length, wide, hidden),
        (length, hidden, length),  # scores, all heads together
        (length, length, hidden),  # weighted values
    ]
    expected = sum(2 * first * second * third for first, second, third in products)
    assert matrix_product_operations(Sizes(hidden, wide, 1), [length]) == expected


def test_matrix_product_operations_add_up_over_layers_and_texts():
    one = matrix_product_operations(Sizes(3, 5, 1), [7]), matrix_product_operations(Sizes(3, 5, 1), [2])
    assert matrix_product_operations(Sizes(3, 5, 4), [7, 2, 2]) == 4 * (one[0] + 2 * one[1])


def test_bert_base_takes_two_operations_per_parameter_and_token_at_short_lengths():
    # 85 million parameters in the layers, two operations each per token.
    assert matrix_product_operations(Sizes(768, 3072, 12), [1]) == pytest.approx(2 * 85e6, rel=0.01)


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1.0), (0.5, 2.5), (1.0, 4.0), (0.9, 3.7)])
def test_quantile_lies_between_neighbours(share, expected):
    assert quantile([4.0, 1.0, 3.0, 2.0], share) == pytest.approx(expected)


def test_median_ratio_is_of_rounds_and_leaves_a_slow_round_alone():
    assert median_ratio([2.0, 2.0, 40.0], [1.0, 1.0, 20.0]) == 2.0


def test_best_of_none_is_none():
    assert best_of({}) is None
    assert best_of({"slow": 2.0, "quick": 1.0}) == "quick"


def test_labels_are_unique():
    labels = [line.label for line in VECTORS]
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize(("figure", "at_most", "met"), [(2.0, False, True), (1.0, False, False), (1.0, True, True)])
def test_a_goal_is_met_on_its_side_of_the_bound(figure, at_most, met):
    assert Goal("work", "rule", figure, 1.5, at_most=at_most).is_met is met


def vectors_result():
    return {
        "model": "base",
        "texts": "squad",
        "batch_size": 2,
        "num_texts": 6,
        "num_tokens": 60,
        "longest": 30,
        "longest_of_file": 40,
        "operations": 3e9,
        "seconds": {OURS: [1.0, 1.0], OURS_HALF: [0.5, 0.5], HUB: [5.0, 5.0], ORT: [1.5, 1.5]},
        "processor_seconds": {OURS: [2.0, 2.0], OURS_HALF: [1.0, 1.0], HUB: [10.0, 9.0], ORT: [3.0, 3.0]},
        "equality": {OURS: {"largest_difference": 2e-7, "least_cosine": 1.0}},
        "settings": {HUB: {"jit": True}},
        "left_out": {"nobody": "no reason"},
    }


def test_goals_of_vectors_compare_with_the_best_peer_and_with_kerashub():
    goals = {goal.rule: goal for goal in judge({"vectors": [vectors_result()]}, {})}
    assert goals[f"{OURS} against {ORT}"].figure == 1.5
    assert not goals[f"{OURS} against {ORT}"].is_met
    assert goals[f"{OURS} against {HUB}"].figure == 5.0
    assert goals[f"{OURS} against {HUB}"].is_met
    assert not any(OURS_HALF in rule and "against" in rule for rule in goals)  # no peer of that dtype took part


def test_fewer_bits_are_judged_by_processor_time_and_sorted_texts_by_nothing_else():
    other = Line(*CTRANSLATE2, INT8).label
    seconds = {OURS: [9.0], OURS_HALF: [2.0], HUB: [1.0], other: [3.0]}
    equality = {OURS_HALF: {"largest_difference": 1e-3, "least_cosine": 0.998}}
    result = {**vectors_result(), "texts": "squad, sorted", "processor_seconds": seconds, "equality": equality}
    (goal,) = judge({"vectors": [result]}, {})
    assert goal.rule == f"{OURS_HALF} against {other}"
    assert goal.figure == 1.5
    equality[OURS_HALF]["least_cosine"] = 0.996
    assert judge({"vectors": [result]}, {}) == []


def test_the_share_of_the_peak_is_of_full_batches():
    full = {"model": "base", "axis": "full", "operations": 170e9, "seconds": {OURS: [1.0, 2.0, 1.0]}}
    (goal,) = judge({"growth": [full, {**full, "axis": "length"}]}, {FLOAT32: 200.0})
    assert goal.figure == pytest.approx(85.0)


def test_training_has_a_goal_for_sentences_and_another_for_full_rows():
    ours, torch = (f"{name}, {FLOAT32}" for name, _ in (PREDICT, TORCH))
    result = {"texts": SENTENCES, "batch_size": 32, "seconds": {ours: [1.0], torch: [2.0]}}
    goals = judge({"training": [result, {**result, "texts": "rows of 64 tokens"}]}, {})
    assert [(goal.bound, goal.figure) for goal in goals] == [(1.5, 2.0), (2.2, 2.0)]


def test_tables_hold_every_line_and_every_note():
    tabulate = pytest.importorskip("tabulate", reason="needs the extra `benchmarks`")
    from comparison.report import tables_of
    from comparison.table import as_markdown, as_text

    assert tabulate
    machine = {"processor": "some", "cores": 2, "memory_gb": 8.0, "busy_share_before": 0.0}
    peaks = [{"library": "torch", "dtype": FLOAT32, "size": 64, "gigaflops": [5.0, 6.0]}]
    took = {"seconds": 1, "processor_seconds": 2}
    result = {"machine": machine, **took, "peaks": peaks, "works": {"vectors": [vectors_result()]}}
    tables = tables_of(result, judge(result["works"], {}))
    row = next(row for row in tables[1].rows if row[0] == ORT)
    assert row[:5] == [ORT, "4.0", "500.0", "1.50x", "33%"]
    for printed in (as_text(tables), as_markdown(tables)):
        assert "left out: nobody: no reason" in printed
        assert "jit True" in printed


def test_turns_begin_with_another_line_each_round_and_drop_those_that_fail():
    order, figures = [], {"seconds": 1.0}

    def turn(name):
        order.append(name)
        if name == "third" and order.count(name) > 1:
            raise ContenderError("it broke")
        return figures

    plan = QUICK.with_rounds(2)
    turns = {name: lambda name=name: turn(name) for name in ("first", "second", "third")}
    kept, failed = take_turns(turns, plan, rest=lambda: None)
    assert order == ["third", "first", "second", "first", "second", "third", "second", "first"]
    assert series(kept, "seconds") == {"first": [1.0, 1.0], "second": [1.0, 1.0]}
    assert failed == {"third": "it broke"}
