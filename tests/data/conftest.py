"""Fixtures of the tests of readers: files to read."""

import gzip

import pytest


@pytest.fixture
def write(tmp_path):
    """A function that writes text or bytes to a file, plain or gzip, and gives its path."""

    def write(content, name="data.csv", *, compress=False):
        content = content.encode() if isinstance(content, str) else content
        path = tmp_path / (f"{name}.gz" if compress else name)
        path.write_bytes(gzip.compress(content) if compress else content)
        return path

    return write
