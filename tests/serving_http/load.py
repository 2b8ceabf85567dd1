"""Load tests: clients that query a server for a while, and the figures that they measure."""

import threading
import time
from dataclasses import dataclass, field

import numpy as np

MILLISECONDS = 1000


@dataclass
class Measured:
    """The figures of one load."""

    concurrency: int
    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    num_texts: int = 0

    def percentile(self, percent):
        """Milliseconds within which that share of the requests was answered."""
        return float(np.percentile(self.latencies, percent)) * MILLISECONDS

    @property
    def texts_per_second(self):
        return self.num_texts / self.seconds

    def figures(self):
        return {
            "concurrency": self.concurrency,
            "requests": len(self.latencies),
            "failures": len(self.failures),
            "texts_per_second": round(self.texts_per_second, 1),
            "p50_ms": round(self.percentile(50), 1),
            "p99_ms": round(self.percentile(99), 1),
        }


def ask_for(seconds, make_client, requests, *, concurrency, every_second=None):
    """`concurrency` clients, each with one request under way, for `seconds`.

    Args:
        seconds: how long new requests are sent.
        make_client: makes a `RestClient`.
        requests: lists of texts; each client sends all of them, from its own starting point.
        concurrency: how many clients.
        every_second: called about once per second meanwhile, if given.

    Returns:
        A `Measured`.
    """
    found, lock, end = Measured(concurrency), threading.Lock(), time.monotonic() + seconds

    def ask(place):
        client, step = make_client(), place * len(requests) // concurrency
        while time.monotonic() < end:
            texts = requests[step % len(requests)]
            step += 1
            start = time.monotonic()
            try:
                answer = client.predict({"text": texts})
                problem = "" if all(len(column) == len(texts) for column in answer.values()) else "rows are missing"
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
            took = time.monotonic() - start
            with lock:
                if problem:
                    found.failures.append(problem)
                else:
                    found.latencies.append(took)
                    found.num_texts += len(texts)
        client.close()

    start = time.monotonic()
    threads = [threading.Thread(target=ask, args=(place,)) for place in range(concurrency)]
    for thread in threads:
        thread.start()
    while every_second is not None and time.monotonic() < end:
        every_second()
        time.sleep(1)
    for thread in threads:
        thread.join(seconds + 120)
    found.seconds = time.monotonic() - start
    return found


def table(rows):
    """Lines of a Markdown table of dictionaries with the same keys."""
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
    return "\n".join([*lines, *("| " + " | ".join(str(value) for value in row.values()) + " |" for row in rows)])
