"""The arithmetic of training BERT on many accelerators: prints the tables of docs/explanation/scale.md.

    python tests/benchmarks/scale.py

Every constant in capitals is an assumption that the page names, with its source.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from keras_bert_layers.optimizers import PretrainingRecipe

FLOAT32 = 4  # bytes
LENGTH, ROWS_PER_DEVICE, MASKED = 512, 32, 0.15
SHARE_OF_PEAK = 0.4  # of the vendor's peak that the products of a step reach
ACTIVATION_BYTES = 2  # bfloat16
NUM_TOKENS = 100e9
RECORDS_PER_SECOND = 128_000  # of 512 tokens, that one core reads: scale_measured.py read
RECORD_BYTES = 2348  # the same


class Bert(NamedTuple):
    """The sizes of a BERT with the heads of pretraining."""

    name: str
    vocabulary: int
    hidden: int
    layers: int
    heads: int
    positions: int = 512

    def block_parameters(self) -> int:
        """Twelve matrices of hidden x hidden, their biases and two norms."""
        return 12 * self.hidden**2 + 13 * self.hidden

    def parameters(self) -> int:
        """All weights; the output matrix of the masked words is the token embedding."""
        embedding = (self.vocabulary + self.positions + 2 + 2) * self.hidden
        pooler = self.hidden**2 + self.hidden
        masked = self.hidden**2 + 3 * self.hidden + self.vocabulary
        return embedding + self.layers * self.block_parameters() + pooler + masked + 2 * self.hidden + 2

    def step_operations(self, rows: int, length: int) -> float:
        """Operations of a training step: three times the forward pass, two per multiplication and addition."""
        token = self.layers * (2 * 12 * self.hidden**2 + 4 * length * self.hidden)
        masked = ceil(MASKED * length) * 2 * (self.hidden**2 + self.hidden * self.vocabulary)
        return 3.0 * rows * (length * token + masked)

    def activation_bytes(self, rows: int, length: int, *, rematerialize: bool) -> float:
        """What the blocks keep for the gradients: 34 h + 5 heads x length bytes per token; or the input of each."""
        whole = rows * length * (34 * self.hidden + 5 * self.heads * length)
        kept = ACTIVATION_BYTES * rows * length * self.hidden
        return self.layers * kept + whole if rematerialize else self.layers * whole


@dataclass(frozen=True)
class Machine:
    """Accelerators of one kind, with the bytes per second that one sends within a group and between groups."""

    name: str
    peak: float
    memory: float
    group: int
    within: float
    between: float


BASE = Bert("base", 30522, 768, 12, 12)
LARGE = Bert("large", 30522, 1024, 24, 16)
H100 = Machine("H100, servers of 8", 989e12, 80e9, 8, 450e9, 50e9)
TPU = Machine("TPU v4", 275e12, 32 * 2**30, 4096, 1.1e15 / 4096, 1.1e15 / 4096)


def gradient_bytes(model: Bert, *, tied_twice: bool = True) -> int:
    """Bytes that a step sums over all devices, in float32; the token embedding's gradient comes in two parts."""
    twice = model.vocabulary * model.hidden if tied_twice else 0
    return FLOAT32 * (model.parameters() + twice)


def all_reduce_seconds(size: float, devices: int, machine: Machine) -> float:
    """A ring within each group, and one between groups on each device's part: 2 (n - 1) / n of the bytes."""
    inner = min(devices, machine.group)
    outer = ceil(devices / machine.group)
    ring = 2 * (inner - 1) / inner * size / machine.within
    return ring + 2 * (outer - 1) / outer * size / inner / machine.between


def step_seconds(model: Bert, machine: Machine, length: int = LENGTH) -> float:
    """The time that a device computes."""
    return model.step_operations(ROWS_PER_DEVICE, length) / (SHARE_OF_PEAK * machine.peak)


def recipe_hours(model: Bert, machine: Machine) -> list[float]:
    """The hours of BERT's own recipe on as many devices as make its batch: short rows, then long ones."""
    recipe = PretrainingRecipe()
    devices = recipe.batch_size // ROWS_PER_DEVICE
    sums = all_reduce_seconds(gradient_bytes(model), devices, machine)
    return [steps * (step_seconds(model, machine, length) + sums) / 3600 for length, steps in recipe.phases]


def efficiency(model: Bert, devices: int, machine: Machine) -> float:
    """The share of the time that devices compute, if sums begin after the last gradient; at least this is reached."""
    compute = step_seconds(model, machine)
    return compute / (compute + all_reduce_seconds(gradient_bytes(model), devices, machine))


def rows_per_second(model: Bert, devices: int, machine: Machine) -> float:
    """Rows of all devices in a second, without waiting for input."""
    return devices * ROWS_PER_DEVICE * efficiency(model, devices, machine) / step_seconds(model, machine)


def memory_bytes(model: Bert, devices: int, *, rematerialize: bool, sharded: bool) -> float:
    """Weights, gradients and two moments in float32, and what the blocks keep of a batch."""
    moments = 2 / devices if sharded else 2
    state = FLOAT32 * model.parameters() * (2 + moments)
    return state + model.activation_bytes(ROWS_PER_DEVICE, LENGTH, rematerialize=rematerialize)


def table(heads: list[str], rows: list[list[str]]) -> str:
    """A Markdown table, with numbers to the right."""
    lines = [heads, ["---", *["--:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |".replace("| --- |", "|---|").replace("--: |", "--:|") for line in lines)


def tables() -> list[str]:
    """The tables of the page, in its order."""
    models = (BASE, LARGE)
    size = [
        [
            model.name,
            f"{model.parameters():,}",
            f"{gradient_bytes(model, tied_twice=False) / 1e6:,.0f}",
            f"{gradient_bytes(model) / 1e6:,.0f}",
        ]
        for model in models
    ]
    memory = [
        [
            f"{model.name}, {name}",
            *(f"{memory_bytes(model, 8, rematerialize=remat, sharded=sharded) / 1e9:.1f}" for remat in (False, True)),
        ]
        for model in models
        for name, sharded in (("moments on every device", False), ("moments divided by 8", True))
    ]
    speed = [
        [f"{model.name}, {machine.name}", *(f"{efficiency(model, devices, machine):.0%}" for devices in (8, 64, 512))]
        for machine in (H100, TPU)
        for model in models
    ]
    reading = [
        [
            f"{model.name}, {devices} x {machine.name}",
            f"{(rows := rows_per_second(model, devices, machine)):,.0f}",
            f"{rows * RECORD_BYTES / 1e6:,.0f}",
            f"{ceil(rows / RECORDS_PER_SECOND)}",
            f"{NUM_TOKENS / LENGTH / rows / 3600:.1f}",
            f"{NUM_TOKENS / LENGTH / min(rows, RECORDS_PER_SECOND) / 3600:.1f}",
        ]
        for machine in (H100, TPU)
        for model in models
        for devices in (8, 64, 512)
    ]
    recipe = [
        [f"{model.name}, 8 x {machine.name}", *(f"{hours:.1f}" for hours in (*found, sum(found)))]
        for machine in (H100, TPU)
        for model in models
        for found in [recipe_hours(model, machine)]
    ]
    return [
        table(["BERT", "parameters", "MB of gradients", "MB all-reduced"], size),
        table(["GB per device", "without rematerialization", "with it"], memory),
        table(["efficiency", "8", "64", "512"], speed),
        table(["training", "rows/s", "MB/s of records", "readers", "hours", "hours, every process reads all"], reading),
        table(["hours", "900,000 steps of 128 tokens", "100,000 steps of 512", "together"], recipe),
    ]


if __name__ == "__main__":
    print("\n\n".join(tables()))
