"""`examples/serving/batcher.py`: which rows share a step, the order of requests, and errors of one request."""

import asyncio
import threading

import numpy as np
import pytest


@pytest.fixture
def steps():
    """What went through the model: the key and the rows of each step."""
    return []


@pytest.fixture
def make(import_example, steps):
    module = import_example("batcher")

    def run(key, columns):
        rows = columns["text"].tolist()
        steps.append((key, rows))
        if "wait" in rows:
            gate.wait(10)
        if "bad" in rows:
            raise ValueError(f"bad among {len(rows)}")
        return [row.upper() for row in rows]

    gate = threading.Event()

    def make(**options):
        batcher = module.Batcher(run, **options)
        batcher.gate = gate
        return batcher

    return make


def texts(*rows):
    """Rows of as many tokens as they have letters."""
    return {"text": np.array(rows, object)}, [len(row) for row in rows]


async def after_a_step(batcher, *requests):
    """The outcomes of requests that all wait while the model works."""
    first = asyncio.create_task(batcher.answer("a", *texts("wait")))
    await asyncio.sleep(0.05)
    tasks = [asyncio.create_task(batcher.answer(key, *texts(*rows))) for key, *rows in requests]
    await asyncio.sleep(0.05)
    batcher.gate.set()
    await first
    return await asyncio.gather(*tasks, return_exceptions=True)


def test_one_request_waits_for_nobody(make, steps):
    assert asyncio.run(make().answer("a", *texts("x", "y"))) == ["X", "Y"]
    assert steps == [("a", ["x", "y"])]


def test_what_waits_goes_together(make, steps):
    answers = asyncio.run(after_a_step(make(max_tokens=5), ("a", "p"), ("b", "q"), ("a", "r", "s"), ("b", "t")))
    assert answers == [["P"], ["Q"], ["R", "S"], ["T"]]
    assert steps[1:] == [("a", ["p", "r", "s"]), ("b", ["q", "t"])]


def test_a_step_is_full_by_tokens(make, steps):
    waiting = [("a", "ppp"), ("a", "q", "rr"), ("a", "ssss", "t"), ("a", "u")]
    answers = asyncio.run(after_a_step(make(max_tokens=6), *waiting))
    assert answers == [["PPP"], ["Q", "RR"], ["SSSS", "T"], ["U"]]
    assert [rows for _, rows in steps[1:]] == [["ppp", "q", "rr"], ["ssss", "t", "u"]]


def test_a_row_above_the_budget_runs_alone_and_in_its_turn(make, steps):
    answers = asyncio.run(after_a_step(make(max_tokens=3), ("a", "p"), ("a", "qqqqqqq", "r"), ("a", "s")))
    assert answers == [["P"], ["QQQQQQQ", "R"], ["S"]]
    assert [rows for _, rows in steps[1:]] == [["p"], ["qqqqqqq"], ["s", "r"]]


def test_nobody_starves(make, steps):
    """A large row of another key gets its turn among many small ones."""
    small = [("a", "x", "x", "x") for _ in range(20)]
    asyncio.run(after_a_step(make(max_tokens=3), *small[:2], ("b", "y" * 9), *small[2:]))
    assert [key for key, _ in steps[1:]].index("b") == 2
    assert sum(len(rows) for key, rows in steps[1:] if key == "a") == 60


def test_steps_are_observed(make):
    seen = []
    batcher = make(max_tokens=5, observe=lambda rows, tokens: seen.append((rows, tokens)))
    asyncio.run(after_a_step(batcher, ("a", "pp", "q"), ("a", "rrrr")))
    assert seen == [(1, 4), (2, 3), (1, 4)]
    assert len(batcher) == 0


def test_a_large_request_takes_turns(make, steps):
    answers = asyncio.run(after_a_step(make(max_tokens=2), ("a", "p", "q", "r", "s", "t"), ("b", "x"), ("a", "y")))
    assert answers == [["P", "Q", "R", "S", "T"], ["X"], ["Y"]]
    assert steps[1:] == [("a", ["p", "q"]), ("b", ["x"]), ("a", ["y", "r"]), ("a", ["s", "t"])]


def test_an_error_is_of_the_request_that_made_it(make, steps):
    answers = asyncio.run(after_a_step(make(), ("a", "p"), ("a", "bad"), ("a", "r")))
    assert answers[::2] == [["P"], ["R"]]
    assert str(answers[1]) == "bad among 1"
    assert [rows for _, rows in steps[1:]] == [["p", "bad", "r"], ["p"], ["bad"], ["r"]]


def test_an_error_in_the_middle_of_a_large_request(make):
    batcher = make(max_tokens=4)

    async def ask():
        with pytest.raises(ValueError, match="bad among 2"):
            await batcher.answer("a", *texts("p", "q", "r", "bad", "t"))
        return await batcher.answer("a", *texts("z"))

    assert asyncio.run(ask()) == ["Z"]


def test_clients_that_have_left_are_left_out(make, steps):
    async def ask():
        batcher = make()
        first = asyncio.create_task(batcher.answer("a", *texts("wait")))
        await asyncio.sleep(0.05)
        gone = asyncio.create_task(batcher.answer("a", *texts("p")))
        last = asyncio.create_task(batcher.answer("a", *texts("q")))
        await asyncio.sleep(0.05)
        gone.cancel()
        batcher.gate.set()
        await first
        assert await last == ["Q"]

    asyncio.run(ask())
    assert [rows for _, rows in steps] == [["wait"], ["q"]]
