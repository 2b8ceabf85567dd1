"""The shipped tables, and the program that makes them."""

import importlib
import unicodedata
import zlib
from importlib.metadata import version
from importlib.resources import files

import pytest

from keras_bert_layers.preprocessing import tables

FILES = [
    (reference, lowercase, strip_accents)
    for reference in ("google", "huggingface")
    for lowercase in (True, False)
    for strip_accents in (True, False)
]
# The smallest tables of each kind of reference; the others are built in the slow test.
QUICK = [("google", False, False), ("huggingface", False, False)]
# What all of them may add to an installation.
MAX_BYTES = 1_300_000


@pytest.fixture(scope="module")
def build():
    """The building program, where it would make the bytes of the machine that made the shipped ones."""
    pytest.importorskip("dartsclone", reason="needs the package dartsclone, which the extra `test` installs")
    pytest.importorskip("tokenizers", reason="keras-hub brings the tokenizers library")
    here = {
        "google": f"unicodedata {unicodedata.unidata_version}",
        "huggingface": f"tokenizers {version('tokenizers')}",
        "cutter": f"tensorflow-text {version('tensorflow-text')}",
    }
    if here != tables.made_from():
        pytest.skip(f"the tables were made from {tables.made_from()}, installed are {here}")
    return importlib.import_module("build")


@pytest.fixture(scope="module")
def cutter(build):
    return build.Cutter()


@pytest.mark.slow
@pytest.mark.parametrize(("reference", "lowercase", "strip_accents"), QUICK)
def test_program_makes_the_shipped_bytes(reference, lowercase, strip_accents, build, cutter):
    assert (
        build.build_table(reference, lowercase, strip_accents, cutter)
        == tables.load(reference, lowercase, strip_accents).model
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize(("reference", "lowercase", "strip_accents"), FILES)
def test_program_makes_all_shipped_bytes(reference, lowercase, strip_accents, build, cutter):
    test_program_makes_the_shipped_bytes(reference, lowercase, strip_accents, build, cutter)


@pytest.mark.slow
def test_program_makes_the_shipped_index(build, cutter):
    shipped = (files(tables) / "tables.json").read_text(encoding="ascii")
    assert build.to_json(build.build_index(cutter)) == shipped


def test_folding_is_the_library_s(build):
    shipped = zlib.decompress((files(tables) / tables.FOLDING).read_bytes())
    assert build.references.folding() == shipped


def test_files_are_small():
    folder = files(tables)
    sizes = [len((folder / tables.file_name(*name)).read_bytes()) for name in FILES]
    sizes.append(len((folder / tables.FOLDING).read_bytes()))
    assert sum(sizes) + len((folder / "tables.json").read_bytes()) < MAX_BYTES


@pytest.mark.parametrize(("reference", "lowercase", "strip_accents"), FILES)
def test_stand_ins(reference, lowercase, strip_accents):
    """One to one, and of characters that no normalised text holds for another reason."""
    table = tables.load(reference, lowercase, strip_accents)
    assert len(set(table.stand_ins.values())) == len(table.stand_ins)
    assert not set(table.stand_ins) & set(table.stand_ins.values())
    categories = {unicodedata.category(chr(code)) for code in table.stand_ins.values()}
    assert categories == ({"Cf"} if reference == "google" else {"Co"})
    assert (table.final_sigma is not None) == (reference == "google" and lowercase)


def test_made_from_names_versions():
    assert set(tables.made_from()) == {"google", "huggingface", "cutter"}
    assert all(text.split(" ")[1][0].isdigit() for text in tables.made_from().values())
