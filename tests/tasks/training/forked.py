"""Runs programs in copies of a process that has imported what takes seconds to import, and has run nothing yet.

    python forked.py MODULE...

Reads lines of JSON, each a list of programs that run at the same time: their arguments, the variables of their
environment, and the files that their output goes to; with "errors", what they print to standard error as well.
Answers each line by a list of their exit codes. A copy is a process as any other: it has its own devices, and is killed
or exits alone.
"""

import gc
import importlib
import json
import os
import runpy
import sys
import warnings


def start(program: dict) -> int:
    """The number of a new process that runs a program."""
    with warnings.catch_warnings(action="ignore"):  # of forks; there are no threads yet that hold locks
        child = os.fork()
    if child == 0:
        os.environ.update(program["variables"])
        output = os.open(program["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2) if program["errors"] else (1,):
            os.dup2(output, stream)
        os.close(output)
        sys.argv = program["arguments"]
        sys.path[0] = os.path.dirname(sys.argv[0])
        runpy.run_path(sys.argv[0], run_name="__main__")
        sys.exit()
    return child


if __name__ == "__main__":
    for module in sys.argv[1:]:
        importlib.import_module(module)
    gc.freeze()  # else each copy looks through all of it, above all as it ends
    gc.set_threshold(100_000, 10, 100)  # tracing makes millions of objects that live as long as their graph
    for line in sys.stdin:
        children = [start(program) for program in json.loads(line)]
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        print(json.dumps(codes), flush=True)
