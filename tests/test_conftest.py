"""The lists in conftest.py, which order the tests, name files that exist."""

from pathlib import Path


def test_files_of_the_order_exist(pytestconfig):
    path = Path(__file__).with_name("conftest.py")
    conftest = pytestconfig.pluginmanager.get_plugin(str(path))
    named = {name.partition("::")[0] for name in (*conftest.APART, *conftest.LONGEST)}
    assert [name for name in sorted(named) if not (path.parents[1] / name).is_file()] == []
