"""Starts a server with BentoML in a process of its own, watches it, and stops it."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
from rest_client import RestClient

MEBIBYTE = 1024 * 1024

# Two imports of TensorFlow on a busy machine.
SECONDS_TO_START = 120


class ServerProcess:
    """`bentoml serve` on a free port of this machine only.

    Args:
        service: the file and the class, as `"service:TextService"`.
        folder: the folder of that file.
        models: the folder that holds the models.
        home: an empty folder for what BentoML writes.
        options: more environment variables.
    """

    def __init__(self, service, folder, *, models, home, name="sentiment", **options):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url, self.name = f"http://127.0.0.1:{self.port}", name
        self.log = Path(home) / f"server_{self.port}.log"
        program = [sys.executable, "-m", "bentoml", "serve", "--working-dir", str(folder)]
        environment = {
            **os.environ,
            "BENTOML_HOME": str(home),
            "BENTOML_DO_NOT_TRACK": "True",
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "MODEL_BASE_PATH": str(models),
            "MODEL_NAME": name,
            **options,
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*program, service, "--host", "127.0.0.1", "--port", str(self.port)],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
            )

    def client(self, **options):
        return RestClient(self.url, self.name, **{"timeout": 120.0, "deadline": 240.0, **options})

    def wait_until_ready(self):
        client, start = self.client(timeout=2.0, attempts=1), time.monotonic()
        try:
            client.wait_until_ready(SECONDS_TO_START)
        except Exception as error:
            raise AssertionError(f"no server: {error}\n{self.output()}") from error
        finally:
            client.close()
        return time.monotonic() - start

    def output(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def processes(self):
        return [psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]

    def mebibytes(self):
        """What the server's processes hold in memory, without what they share with each other."""
        return sum(member.memory_full_info().uss for member in self.processes()) / MEBIBYTE

    def terminate(self):
        """SIGTERM, as a container's runtime sends it."""
        self.process.send_signal(signal.SIGTERM)

    def stop(self):
        family = []
        with contextlib.suppress(psutil.NoSuchProcess):
            family = psutil.Process(self.process.pid).children(recursive=True)
        if self.process.poll() is None:
            self.terminate()
        try:
            self.process.wait(60)
        finally:
            for member in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    member.kill()
