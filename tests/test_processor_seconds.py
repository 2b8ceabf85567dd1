"""The plugin that sums what tests cost, and its table."""

import json
import subprocess
import sys

from processor_seconds import ProcessorSeconds, table

WORK = [sys.executable, "-S", "-c", "sum(range(10_000_000))"]


def test_children_count_and_a_row_inside_another_counts_once(tmp_path):
    plugin = ProcessorSeconds(tmp_path / "seconds")
    with plugin._span("file"), plugin._span("fixture"):
        subprocess.run(WORK, check=True)
    assert plugin.seconds["fixture"] > 0.05
    assert plugin.seconds["fixture"] > 2 * plugin.seconds["file"]


def test_the_table_sums_sessions(tmp_path):
    path = tmp_path / "seconds"
    path.write_text("".join(json.dumps(row) + "\n" for row in ({"a": 1.0, "b": 2.5}, {"a": 3.25}, {"c": 0.5})))
    assert table(path, 2).splitlines() == ["     4.2  a", "     2.5  b", "     7.2  in all"]
