"""The hostile requests of `tests/serving/hostile_requests.py`, sent to `examples/serving/service.py`."""

import json
import socket

import pytest
from hostile_requests import TEXT, Case, faults, http, requests, send

pytestmark = pytest.mark.serving

PATH = "/v1/models/sentiment:predict"
GOOD = Case((http(json.dumps({"inputs": {"text": [TEXT]}}).encode(), path=PATH),), 1)


def test_every_request_is_refused_with_a_reason_or_answered(start_server, models):
    server = start_server(models, REQUEST_SECONDS="7")  # less than what a case may take
    before = {member.pid for member in server.processes()}
    right = json.loads(send(server.port, GOOD).body)["outputs"]["label"][0]
    cases = requests(PATH)
    assert len(cases) > 250
    found = faults(server.port, cases, right)
    assert not found, "\n".join(found)
    slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(300)]
    try:
        for connection in slow:
            connection.sendall(GOOD.parts[0][:-5])
        assert send(server.port, GOOD).status == 200
    finally:
        for connection in slow:
            connection.close()
    assert json.loads(send(server.port, GOOD).body)["outputs"]["label"] == [right]
    assert {member.pid for member in server.processes()} == before
