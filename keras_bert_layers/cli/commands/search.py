"""Search an index of passages that `index` made.

Prints the score, the id and the beginning of the text of the best passages, the best first; with --json all of their
columns, as JSON lines. The score is the cosine of query and passage; every passage is compared. --hybrid also searches
by words (BM25), and fuses both rankings by their ranks (reciprocal rank fusion); --rerank lets a cross-encoder score
the first --candidates again.

--where takes a condition of SQL on the columns of the index, such as "year > 2000 AND language = 'en'"; names with
spaces in backquotes.

Examples:
  keras-bert-layers search articles "who discovered penicillin"
  keras-bert-layers search articles "penicillin" --hybrid --where "year > 2000" --json
  keras-bert-layers search articles "who discovered penicillin" --rerank my-cross-encoder --candidates 100
"""

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.cli.encoded_rows import load_search_encoder
from keras_bert_layers.cli.models import digest_of, load_task_of_texts
from keras_bert_layers.cli.passages import PassageTable
from keras_bert_layers.cli.terminal import report

OWNER = "search"
# The rows of each ranking that are fused, at least.
_FUSED = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    add = parser.add_argument
    add("index", metavar="DIR", type=Path, help="the index")
    add("query", metavar="QUERY", help="what to search for; after -- if it starts with -")
    add("--top", type=int, default=10, metavar="N", help="how many passages to show (default: 10)")
    add("--where", metavar="SQL", help="search only the passages of which this is true")
    add("--hybrid", action="store_true", help="search by words too")
    add("--rerank", metavar="MODEL", help="a cross-encoder that orders the best passages again")
    add("--candidates", type=int, default=50, metavar="N", help="how many it orders (default: 50)")
    add("--model", metavar="MODEL", help="the model of the index, if it has been moved")
    add("--json", action="store_true", help="print JSON lines")


def run(arguments: argparse.Namespace) -> int:
    """Prints what is found, and returns 0."""
    for name in ("top", "candidates"):
        checks.positive_integer(OWNER, f"--{name}", getattr(arguments, name))
    if not arguments.query.strip():
        raise ValueError(checks.message(OWNER, "QUERY", "hold a word", arguments.query))
    table = PassageTable(arguments.index, owner=OWNER)
    if not table.columns:
        raise ValueError(checks.message(OWNER, "DIR", "be an index", str(arguments.index), "Make one with `index`."))
    if not table.facts["complete"]:
        report("warning", f"{arguments.index} is not complete. Run `index` again with the same arguments.")
    where = None if arguments.where is None else table.check_filter(arguments.where)
    for row in _found(arguments, table, where):
        sys.stdout.write(f"{json.dumps(row, ensure_ascii=False) if arguments.json else _line(row)}\n")
    return 0


def _found(arguments: argparse.Namespace, table: PassageTable, where: str | None) -> list[dict[Any, Any]]:
    """The best passages, the best first."""
    source = arguments.model or table.facts["model"]
    encoder = load_search_encoder(source, owner=OWNER)
    table.check_model(digest_of(encoder), source)
    from keras_bert_layers.tasks.recipes.rankings import ranked, reciprocal_rank_fusion
    from keras_bert_layers.tasks.recipes.searched_texts import vectors_of

    number = max(arguments.top, arguments.candidates) if arguments.rerank else arguments.top
    depth = max(number, _FUSED) if arguments.hybrid else number
    rankings = [table.nearest(vectors_of(encoder, [arguments.query], [], verbose=0)[0][0], where, depth)]
    if arguments.hybrid:
        rankings.append(table.with_words(arguments.query, where, depth))
    rows = {row["id"]: row for ranking in rankings for row in ranking}
    scores: Any = [{"": {row["id"]: row["score"] for row in ranking}} for ranking in rankings]
    best: Any = reciprocal_rank_fusion(*scores, top_k=number)[""] if arguments.hybrid else ranked(scores[0][""], number)
    if arguments.rerank:
        best = _reranked(arguments, {name: rows[name]["text"] for name in best})
    return [{**rows[name], "score": round(score, 6)} for name, score in best.items()]


def _reranked(arguments: argparse.Namespace, texts: dict[str, str]) -> dict[str, float]:
    """The best of these passages by a cross-encoder, and their scores, by their ids."""
    loaded = load_task_of_texts(arguments.rerank, "cross_encoder", owner=OWNER, argument="--rerank")
    names = list(texts)
    found = loaded.model.rank(arguments.query, list(texts.values()), top_k=arguments.top)
    return {names[answer["corpus_id"]]: answer["score"] for answer in found}


def _line(row: dict[str, Any]) -> str:
    """A passage in one line of the terminal, without control characters."""
    line = f"{row['score']:.4f}  {row['id']}  {' '.join(row['text'].split())}"
    shown = "".join(letter if letter.isprintable() else " " for letter in line)
    width = shutil.get_terminal_size().columns
    return shown if len(shown) <= width else f"{shown[: width - 1]}…"
