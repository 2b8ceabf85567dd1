"""Makes keras_bert_layers/export/serving_ops.json, from what released packages of TensorFlow register.

    python tests/export/make_serving_ops.py dump SITE_PACKAGES LISTS/2.12
    python tests/export/make_serving_ops.py make LISTS

`dump`, once per version, loads the libraries of a tensorflow (or tensorflow-cpu) that is installed in SITE_PACKAGES, or
unpacked there, and writes the operations that they register; then, as `LISTS/2.12.text`, with those of the
tensorflow-text beside it, if there is one. It needs Python alone. `make` puts the versions in LISTS together.

TensorFlow Serving 2.N links TensorFlow 2.N. Its `tensorflow_serving/workspace.bzl` names the tensorflow-text: 2.12.1
from r2.12 to r2.19, 2.20.0 since r2.20. `ops_lib` in that one's `tensorflow_text/BUILD` states what is linked; 2.20.0
has `trimmer_ops_cc` and `utf8_binarize_op_cc` beside all that 2.12.1 has.
"""

from __future__ import annotations

import ctypes
import json
import re
import sys
from pathlib import Path

TARGET = Path(__file__).parents[2] / "keras_bert_layers" / "export" / "serving_ops.json"
# What a server of text models has no use for, or does not have: other devices, other machines, Python, training data.
LEFT_OUT = re.compile(
    "^_|^Experimental|TPU|Tpu|Xla|Collective|Nccl|DTensor|Relayout|CopyToMesh|PyFunc|Dataset|Iterator|Debug|Dump|Sdca"
    "|BoostedTrees|SparseCore|Summary|Calibration|CustomAggregator|Minibatch|Dedup|DataService|^Dynamic(Enqueue)|ResourceApply|SparseApply|^Apply"
)
TEXT = {
    "2.20": ["TFText>RoundRobinGenerateMasks", "TFText>RoundRobinTrim", "TFText>Utf8Binarize"],
}


class Buffer(ctypes.Structure):
    """`TF_Buffer` of TensorFlow's C API."""

    _fields_ = [("data", ctypes.c_void_p), ("length", ctypes.c_size_t), ("deallocator", ctypes.c_void_p)]


def dump(packages: Path, target: Path) -> None:
    """Writes what `TF_GetAllOpList` gives."""
    ctypes.CDLL(str(packages / "tensorflow" / "libtensorflow_framework.so.2"), ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(packages / "tensorflow" / "libtensorflow_cc.so.2"), ctypes.RTLD_GLOBAL)
    library.TF_GetAllOpList.restype = ctypes.POINTER(Buffer)
    library.TF_NewStatus.restype = ctypes.c_void_p
    library.TF_LoadLibrary.argtypes = [ctypes.c_char_p, ctypes.c_void_p]

    def write(path: Path) -> None:
        buffer = library.TF_GetAllOpList().contents
        path.write_bytes(ctypes.string_at(buffer.data, buffer.length))

    write(target)
    text = sorted((packages / "tensorflow_text" / "python" / "ops").glob("*.so"))
    for path in text:
        library.TF_LoadLibrary(str(path).encode(), library.TF_NewStatus())
    if text:
        write(target.with_name(f"{target.name}.text"))


def make(lists: Path) -> None:
    """Writes the versions in which operations and their attributes came."""
    from tensorflow.core.framework.op_def_pb2 import OpList

    def read(path: Path) -> dict[str, set[str]]:
        ops = OpList.FromString(path.read_bytes()).op
        return {op.name: {attr.name for attr in op.attr} for op in ops if not LEFT_OUT.search(op.name)}

    versions = sorted(
        (path.name for path in lists.glob("2.*") if path.suffix != ".text"), key=lambda name: int(name[2:])
    )
    found: dict[str, set[str]] = {}
    operations: dict[str, list[str]] = {}
    attributes: dict[str, dict[str, list[str]]] = {}
    for version in versions:
        text = lists / f"{version}.text"
        now = read(text if version == versions[0] and text.exists() else lists / version)
        new = [*(set(now) - set(found)), *TEXT.get(version, [])]
        operations[version] = sorted(new)
        changed = {name: sorted(now[name] - found[name]) for name in sorted(set(now) & set(found))}
        attributes[version] = {name: names for name, names in changed.items() if names}
        found.update({name: found.get(name, set()) | names for name, names in now.items()})
    about = (
        f"The TensorFlow Serving in which an operation, or an attribute of one, came; {versions[0]} is that or before. "
        f"From what tensorflow-cpu {versions[0]} to {versions[-1]} register, and tensorflow-text as a server links it. "
        "Made by tests/export/make_serving_ops.py, which states the sources."
    )
    table = {
        "about": about,
        "operations": {version: names for version, names in operations.items() if names},
        "attributes": {version: names for version, names in attributes.items() if names},
    }
    TARGET.write_text(json.dumps(table, indent=0, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "dump":
        dump(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        make(Path(sys.argv[2]))
