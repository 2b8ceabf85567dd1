"""What tests cost: processor seconds of each file and of each shared fixture, with the processes that they start.

With the name of a file in `PROCESSOR_SECONDS`, a session of pytest appends its costs to it, a line of JSON each;
`python tests/processor_seconds.py FILE` prints the dearest. Threads and children count; a child that outlives its test
counts for the test during which it is waited for.
"""

import collections
import contextlib
import json
import os
import sys
from pathlib import Path

import pytest

OUTSIDE_TESTS = "imports, collection and pytest itself"


def processor_seconds() -> float:
    """User and system seconds of this process, its threads, and its children that have ended."""
    return sum(os.times()[:4])


class ProcessorSeconds:
    """A plugin of pytest that sums processor seconds by file and by fixture."""

    def __init__(self, path: Path):
        self.path = path
        self.seconds = collections.Counter()
        self._inner = [0.0]  # seconds of what ran inside each open span, and is a row of its own

    @contextlib.contextmanager
    def _span(self, row):
        begin = processor_seconds()
        self._inner.append(0.0)
        try:
            yield
        finally:
            seconds = processor_seconds() - begin
            self.seconds[row] += seconds - self._inner.pop()
            self._inner[-1] += seconds

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        with self._span(item.nodeid.partition("::")[0]):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        if fixturedef.scope == "function":
            return (yield)
        place = fixturedef.baseid or "pytest"
        with self._span(f"{place}: the fixture {fixturedef.argname}"):
            return (yield)

    def pytest_sessionfinish(self, session):
        if session.config.getoption("numprocesses", None):
            self.seconds[OUTSIDE_TESTS] += sum(os.times()[:2])  # the workers, its children, counted themselves
        else:
            self.seconds[OUTSIDE_TESTS] += processor_seconds() - self.seconds.total()
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["processor_seconds"] = dict(self.seconds)
            return
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(self.seconds) + "\n")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        self.seconds.update(getattr(node, "workeroutput", {}).get("processor_seconds", {}))


def table(path: Path, num_rows: int) -> str:
    """The dearest rows of all sessions in a file, the dearest first."""
    seconds = collections.Counter()
    for line in path.read_text(encoding="utf-8").splitlines():
        seconds.update(json.loads(line))
    rows = [f"{value:8.1f}  {name}" for name, value in seconds.most_common(num_rows)]
    return "\n".join([*rows, f"{seconds.total():8.1f}  in all"])


if __name__ == "__main__":
    print(table(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else 20))
