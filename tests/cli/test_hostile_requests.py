"""The hostile requests of `tests/serving/hostile_requests.py`, sent to a process of `keras-bert-layers serve`."""

import json
import select
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_requests import TEXT, Case, direct, faults, http, requests, send

PATH = "/v1/models/films:predict"
GOOD = Case((http(json.dumps({"inputs": {"text": [TEXT]}}).encode(), path=PATH),), 1)


@pytest.fixture(scope="module")
def server(saved_model):
    command = [sys.executable, "-m", "keras_bert_layers", "serve", saved_model, "--name", "films", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        process.port = int(process.stdout.readline().partition(PATH)[0].rpartition(":")[2])
        yield process
        process.terminate()


def label(server):
    return json.loads(send(server.port, GOOD).body)["outputs"]["label"][0]


@pytest.mark.slow
def test_every_request_is_refused_with_a_reason_or_answered(server):
    right, cases = label(server), requests(PATH) | direct(PATH)
    assert len(cases) > 250
    assert faults(server.port, cases, right) == []
    assert server.poll() is None
    assert label(server) == right
    if sys.platform == "linux":
        peak = Path(f"/proc/{server.pid}/status").read_text().partition("VmHWM:")[2].split()[0]
        assert int(peak) < 2_500_000, "TensorFlow has 600 MB, and a request a share of 8 MB"


@pytest.mark.slow
def test_half_sent_bodies_hold_nobody_up(server):
    slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(300)]
    try:
        for connection in slow:
            connection.sendall(GOOD.parts[0][:-5])
        assert send(server.port, GOOD).status == 200
        assert select.select(slow[-1:], [], [], 0)[0] == [], "the last of them still sends"
    finally:
        for connection in slow:
            connection.close()
