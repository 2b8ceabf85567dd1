"""`examples/serving/service.py` with a model of real size under rising load and under a long one.

    SOAK_MINUTES=1 python -m pytest -m "serving and exhaustive" tests/serving_http/test_load.py -s

The soak takes SOAK_MINUTES, or 10 minutes.
"""

import itertools
import os
import random
import statistics

import pytest
from c_api.notes import note
from load import ask_for

pytestmark = [pytest.mark.serving, pytest.mark.exhaustive]

SECONDS_A_STEP = 5
MOST_CLIENTS = 64

# The largest steps make TensorFlow take memory that it keeps. For every number of tokens in a step, it keeps what
# oneDNN has made, of each kind the last 1,024 in each thread (`kCapacity` in its mkl_util.h). After minutes of both
# nothing may grow. What is allowed is the noise of an allocator, and BentoML's own: it keeps some kilobytes of the
# requests of the last REQUEST_SECONDS.
WARM_UP_SECONDS = 180
ALLOWED_MEBIBYTES = 24
LARGEST_REQUESTS = [["the film was a long and quiet story " * 60] * 32]


def exported(minilm, folder, file_format="tf_saved_model"):
    """A folder of models with all-MiniLM-L6-v2 in it."""
    import keras_bert_layers as kbl

    version = folder / "models" / "encoder" / "1"
    if file_format == "onnx":
        pytest.importorskip("onnxruntime_extensions")
        version.mkdir(parents=True)
        version /= "model.onnx"
    kbl.load_task(minilm).export(version, format=file_format)
    return folder / "models"


def mixed_requests():
    """Three texts of a sentence or some words to one of a page; one request in ten has eight texts."""
    draw = random.Random(5)
    words = "the film was a long and quiet story of two people who never met again after the war".split()

    def text():
        return " ".join(draw.choices(words, k=draw.randint(100, 300) if draw.random() < 0.25 else draw.randint(3, 20)))

    return [[text() for _ in range(8 if draw.random() < 0.1 else 1)] for _ in range(400)]


def test_load_rises_until_the_slowest_take_twice_as_long(start_server, minilm, tmp_path):
    server = start_server(exported(minilm, tmp_path), name="encoder")
    requests, found = mixed_requests(), []
    ask_for(SECONDS_A_STEP, server.client, requests, concurrency=4)  # the first texts of each length
    concurrency = 1
    while concurrency <= MOST_CLIENTS:
        found.append(ask_for(SECONDS_A_STEP, server.client, requests, concurrency=concurrency))
        if found[-1].percentile(99) > 2 * found[0].percentile(99) and concurrency > 4:
            break
        concurrency *= 2
    note("rising load", steps=[step.figures() for step in found])
    assert [step.failures for step in found] == [[]] * len(found)
    most = max(step.texts_per_second for step in found)
    assert found[-1].texts_per_second > most / 2, "more load than the machine can carry does not stop the work"


@pytest.mark.parametrize(("file_format", "kind"), [("tf_saved_model", "soak"), ("onnx", "soak of an ONNX file")])
def test_soak(file_format, kind, start_server, minilm, tmp_path):
    minutes = float(os.environ.get("SOAK_MINUTES", "10"))
    server = start_server(exported(minilm, tmp_path, file_format), name="encoder")
    requests = mixed_requests()

    def load(seconds):
        memory = []
        found = ask_for(
            seconds, server.client, requests, concurrency=4, every_second=lambda: memory.append(server.mebibytes())
        )
        return found, [round(statistics.median(part), 1) for part in tenths_of(memory)]

    ask_for(10, server.client, LARGEST_REQUESTS, concurrency=2)
    _, warm_up = load(min(WARM_UP_SECONDS, 20 * minutes))
    found, mebibytes = load(60 * minutes)
    note(kind, minutes=minutes, warm_up=warm_up, mebibytes=mebibytes, **found.figures())
    assert found.failures == []
    assert mebibytes[-1] - mebibytes[0] < ALLOWED_MEBIBYTES


def tenths_of(values):
    """Ten parts of a list, of about one length."""
    places = [round(len(values) * part / 10) for part in range(11)]
    return [values[begin:end] for begin, end in itertools.pairwise(places) if end > begin]
