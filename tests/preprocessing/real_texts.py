"""Every text of the optional data folder, as the tests of the tokenizer read it."""

import gzip
import json


def read(path):
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8-sig")


def texts(folder, step=1):
    """The distinct texts, or every `step`-th of them: whole lines of tables, sentences, paragraphs, documents.

    Args:
        folder: the data folder, a Path.
        step: 1 for all.

    Returns:
        A list of strings.
    """
    found = []
    for pattern in ("glue/*/*.tsv.gz", "multiple_choice/*.tsv", "corpus/*.txt*"):
        for path in sorted(folder.glob(pattern)):
            found += read(path).split("\n")
    for path in sorted(folder.glob("ner/*.conll")):
        for sentence in read(path).split("\n\n"):
            found.append(" ".join(line.split("\t")[0] for line in sentence.split("\n")))
    for path in sorted(folder.glob("squad/*.json.gz")):
        found += strings(json.loads(read(path)))
    found += strings(
        [json.loads(line) for line in read(folder / "multiple_choice/swag-sample.json").splitlines() if line]
    )
    for name in ("cran.all.1400", "cran.qry"):
        found += read(folder / "retrieval" / name).split("\r\n.I ")
    return list(dict.fromkeys(found))[::step]


def strings(value):
    """Every string inside nested lists and dictionaries."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [text for item in value for text in strings(item)] if isinstance(value, list) else []
