"""The works by name, in the order in which a run does them."""

from __future__ import annotations

from comparison.measures.growth import measure_growth
from comparison.measures.latency import measure_latency
from comparison.measures.start_up import measure_start_up
from comparison.measures.tokenizing import measure_tokenizing
from comparison.measures.training import measure_training
from comparison.measures.vectors import measure_vectors

WORKS = {
    "tokenizing": measure_tokenizing,
    "vectors": measure_vectors,
    "latency": measure_latency,
    "training": measure_training,
    "start-up": measure_start_up,
    "growth": measure_growth,
}
