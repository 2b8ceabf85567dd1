"""`Installation`: an installed TensorFlow, and a server that is compiled against it."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("serve.c")
STAND_IN = Path(__file__).with_name("stand_in.py")
COMPILERS = ("cc", "gcc", "clang")
# TensorFlow Serving 2.12 to 2.19 links tensorflow_text 2.12.1 (its `tensorflow_serving/workspace.bzl`), whose
# `ops_lib` (`tensorflow_text/BUILD` at v2.12.1) has all of today's operations but those of these two libraries.
MISSING_IN_OLDER_SERVERS = {"_trimmer_ops", "_utf8_binarize_op"}


@dataclass(frozen=True)
class Installation:
    """A TensorFlow and a tensorflow_text beside each other.

    Args:
        site_packages: the folder that holds both.
        python: the interpreter that they are installed for.
    """

    site_packages: Path
    python: str

    @classmethod
    def of_this_process(cls) -> Installation:
        """What this interpreter would import."""
        return cls(Path(importlib.util.find_spec("tensorflow").origin).parents[1], sys.executable)

    def text_libraries(self, *, older: bool = False) -> list[Path]:
        """The operations of tensorflow_text: all of them, or those of an older server."""
        found = sorted((self.site_packages / "tensorflow_text" / "python" / "ops").glob("_*.so"))
        return [path for path in found if not (older and path.stem in MISSING_IN_OLDER_SERVERS)]

    def compile_server(self, folder: Path) -> list[str] | None:
        """The command that starts `serve.c` with this TensorFlow; None where there is no C compiler."""
        compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
        if compiler is None:
            return None
        tensorflow = self.site_packages / "tensorflow"
        program = folder / "serve"
        warnings = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
        command = [compiler, *warnings, "-isystem", tensorflow / "include", SOURCE, "-o", program]
        if sys.platform == "darwin":
            link = [tensorflow / "libtensorflow_cc.2.dylib", tensorflow / "libtensorflow_framework.2.dylib"]
        else:
            # --no-as-needed: the stub is empty of what the program will find in the library and its own libraries.
            link = ["-Wl,--no-as-needed", stub_library(compiler, folder)]
        subprocess.run([*command, *link, f"-Wl,-rpath,{tensorflow}"], check=True)
        return [str(program)]

    def stand_in(self) -> list[str]:
        """The command that starts `stand_in.py`, which does the same in Python."""
        return [self.python, "-I", str(STAND_IN)]


def stub_library(compiler: str, folder: Path) -> Path:
    """A library with the names that `serve.c` wants of libtensorflow_cc, to link against in its place.

    The linker needs no more than names, and takes 8 seconds to read them in a library of 1.1 GB.
    """
    names = sorted(set(re.findall(r"\bTF_\w+(?=\()|\b_ZN\w+", SOURCE.read_text(encoding="utf-8"))))
    source, library = folder / "stub.c", folder / "libtensorflow_cc.so"
    source.write_text("".join(f"void {name}(void) {{}}\n" for name in names), encoding="utf-8")
    subprocess.run([compiler, "-shared", source, "-Wl,-soname,libtensorflow_cc.so.2", "-o", library], check=True)
    return library
