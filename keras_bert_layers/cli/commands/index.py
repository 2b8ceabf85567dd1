"""Make a search index of passages, in a folder, for `search`.

ROWS is a table (.csv, .tsv, .jsonl, .parquet) with a column of texts; a file with a text on each line; or a folder, of
which every .txt and .md file is a text. The other columns of a table are kept, for `search --where`. Rows with a blank
text are left out. MODEL is a checkpoint that embeds sentences, a BERT without a head, or a .keras file of a sentence
encoder, a dual encoder, a multi-vector encoder or a static encoder; the index remembers it.

A passage is known by its id: the column --id, or the column "id" if there is one, or else the number of the row or
line. In a folder it is the path of the file.

Run the same command again after an interruption: passages that are in the index are not encoded again. Run it with
changed rows to update it: only texts that are new or have changed are encoded. --sync also removes the passages whose
ids are no longer in ROWS.

Examples:
  keras-bert-layers index articles.csv --model all-MiniLM-L6-v2 --text body --id url --to articles
  keras-bert-layers index notes/ --model all-MiniLM-L6-v2 --to notes-index --sync
  keras-bert-layers search articles "who discovered penicillin" --where "year > 2000"
"""

import argparse
import itertools
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_layers.cli.encoded_rows import load_search_encoder
from keras_bert_layers.cli.models import digest_of, source_of
from keras_bert_layers.cli.passages import Passage, PassageRows, PassageTable
from keras_bert_layers.cli.terminal import counted, progress, report

OWNER = "index"
#: Passages that are written at a time; an interruption loses the work on at most so many.
ROWS = 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    add = parser.add_argument
    add("rows", metavar="ROWS", type=Path, help="the passages: a file or a folder")
    add("--model", required=True, metavar="MODEL", help="the encoder")
    add("--to", required=True, type=Path, metavar="DIR", help="the index: a new folder, or one to update")
    add("--text", default="text", metavar="COLUMN", help="the column of texts of a table (default: text)")
    add("--id", metavar="COLUMN", help='the column of ids (default: "id", or the number of the row)')
    add("--sync", action="store_true", help="remove the passages that are not in ROWS")
    add("--batch-size", type=int, default=32, metavar="N", help="texts per step (default: 32)")


def run(arguments: argparse.Namespace) -> int:
    """Makes or updates the index, prints the counts, and returns 0."""
    rows = PassageRows(arguments.rows, text=arguments.text, id_column=arguments.id, owner=OWNER)
    table = PassageTable(arguments.to, owner=OWNER)
    ids, kinds = rows.look()
    encoder = load_search_encoder(arguments.model, owner=OWNER)
    from keras import tree

    source = source_of(arguments.model)
    source = str(Path(source).absolute()) if Path(source).exists() else source
    shape = tree.flatten(encoder.output)[0].shape
    table.begin(source, digest_of(encoder), shape[-1], kinds, of_tokens=len(shape) > 2)
    known, num_encoded, num_cut = table.known(), 0, 0
    with progress("Indexing", len(ids), unit="passages") as advance:
        passages = iter(rows)
        while part := list(itertools.islice(passages, ROWS)):
            digests = [(passage, passage.digest, known.get(passage.id, b"")) for passage in part]
            updated = [passage for passage, now, before in digests if now[:16] == before[:16] and now != before]
            changed = [passage for passage, now, before in digests if now[:16] != before[:16]]
            if updated:
                table.put(updated, None, replace=True)
            if changed:
                num_cut += _put(changed, known, table, encoder, arguments.batch_size)
                num_encoded += len(changed)
            advance(len(part))
    gone = sorted(known.keys() - ids) if arguments.sync else []
    table.remove(gone)
    table.finish()
    if num_cut:
        report(
            "warning", f"of {counted(num_cut, 'text')} only the beginning was read, as they are too long. Split them."
        )
    present = counted(len(known.keys() | ids) - len(gone), "passage")
    sys.stdout.write(f"{arguments.to}: {present}; {num_encoded:,} encoded, {len(gone):,} removed\n")
    return 0


def _put(passages: list[Passage], known: dict[str, bytes], table: PassageTable, encoder: Any, batch_size: int) -> int:
    """Encodes and writes passages; returns how many of their texts are longer than the encoder reads."""
    from keras_bert_layers.tasks.feeding.cut_texts import lengths_of_cut
    from keras_bert_layers.tasks.recipes.searched_texts import vectors_of

    texts = [passage.text for passage in passages]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* texts that were looked at are longer", UserWarning)
        vectors = vectors_of(encoder, [], texts, batch_size, verbose=0)[1]
    table.put(passages, vectors, replace=any(passage.id in known for passage in passages))
    if encoder.long_texts is not None:
        return 0
    preprocessor = getattr(encoder, "document_preprocessor", None) or encoder.preprocessor
    if hasattr(encoder, "document_spans"):
        preprocessor = encoder.pipeline.side("document").preprocessor
    prompt = (getattr(encoder, "prompts", None) or {}).get("document", "")
    return len(lengths_of_cut(preprocessor, (np.array(texts, object),), prompt))
