"""A REST client of TensorFlow Serving, and of `service.py`, which has the same interface.

    python3 examples/serving/rest_client.py --model sentiment "A joy to watch." "Two dull hours."
    ... --url http://127.0.0.1:8501                the address of the server (the default)
    ... --input text_pair=document.txt             one more input, one row per line of the file
    ... --signature token_ids                      another signature

Needs `requests`, but neither TensorFlow nor this package. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import requests

# The server is overloaded, restarting or out of time. After any other status a retry would get the same answer.
RETRIED = (429, 502, 503, 504)


class ServingError(Exception):
    """The server returned an error, or could not be reached."""


class RestClient:
    """Sends requests to one model, with retries until a deadline.

    Requests only read, so it is safe to send one twice.

    Args:
        url: the server, as `"http://127.0.0.1:8501"`.
        model: the model's name.
        timeout: seconds for one attempt.
        attempts: attempts per request, including the first.
        pause: seconds before the second attempt, doubled for each further one; a random factor from 0.5 to 1 keeps many
            clients from retrying at once.
        deadline: seconds for all attempts together.

    Examples:
        >>> client = RestClient("http://127.0.0.1:8501", "sentiment", timeout=2.0)  # connects at the first request
        >>> client.address
        'http://127.0.0.1:8501/v1/models/sentiment'
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        timeout: float = 10.0,
        attempts: int = 4,
        pause: float = 0.1,
        deadline: float = 30.0,
    ):
        self.address = f"{url.rstrip('/')}/v1/models/{model}"
        self.timeout = timeout
        self.attempts = attempts
        self.pause = pause
        self.deadline = deadline
        self._session = requests.Session()  # keeps its connection
        self._session.trust_env = False  # ignores the proxies of the environment

    def predict(
        self, inputs: dict[str, list[Any]], signature: str = "serving_default", *, version: int | None = None
    ) -> dict[str, Any]:
        """The answers of a signature: name -> one entry per row.

        Args:
            inputs: name -> one entry per row, e.g. `{"text": ["Good.", "Bad."]}`.
            signature: the signature's name.
            version: the version that must answer; the newest if None.

        Returns:
            The outputs by name; a single output, whose name the REST interface leaves out, as `"output"`.

        Raises:
            ServingError: the server rejects the request, or no attempt got an answer in time.
        """
        address = self.address if version is None else f"{self.address}/versions/{version}"
        answer = self._ask("POST", f"{address}:predict", {"signature_name": signature, "inputs": inputs})
        outputs = answer["outputs"]
        return outputs if isinstance(outputs, dict) else {"output": outputs}

    def versions(self) -> dict[int, str]:
        """The versions that the server knows, and their states: `"AVAILABLE"`, `"LOADING"`, `"END"` and so on."""
        status = self._ask("GET", self.address)["model_version_status"]
        return {int(version["version"]): version["state"] for version in status}

    def wait_until_ready(self, seconds: float = 60.0) -> None:
        """Waits until a version is available; ServingError if none is in time."""
        end = time.monotonic() + seconds
        while True:
            try:
                if "AVAILABLE" in self.versions().values():
                    return
            except ServingError as error:
                if time.monotonic() > end:
                    raise ServingError(f"{self.address} was not ready after {seconds:g} s: {error}") from error
            if time.monotonic() > end:
                raise ServingError(f"{self.address}: no version was available after {seconds:g} s.")
            time.sleep(0.2)

    def close(self) -> None:
        """Closes the connection."""
        self._session.close()

    def _ask(self, method: str, address: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """One request, with retries after temporary errors."""
        end = time.monotonic() + self.deadline
        attempt = 1
        while True:
            reason, pause = "", self.pause * 2 ** (attempt - 1) * random.uniform(0.5, 1)
            timeout = min(self.timeout, end - time.monotonic())
            try:
                response = self._session.request(method, address, json=body, timeout=timeout)
                if response.status_code not in RETRIED:
                    return _content(response)
                reason = _reason(response)
                pause = max(pause, _seconds(response.headers.get("Retry-After")))
            except (requests.ConnectionError, requests.Timeout) as error:
                reason = f"{type(error).__name__}: {error}"
            if attempt >= self.attempts or time.monotonic() + pause >= end:
                raise ServingError(f"{address}: no answer after {attempt} tries. The last one: {reason}")
            time.sleep(pause)
            attempt += 1


def _content(response: requests.Response) -> dict[str, Any]:
    """The JSON object of a successful response; ServingError for any other."""
    if response.status_code != requests.codes.ok:
        raise ServingError(f"{response.url}: HTTP {response.status_code}: {_reason(response)}")
    return response.json()


def _reason(response: requests.Response) -> str:
    """The server's error message: `error` of its JSON, or the beginning of the response."""
    try:
        return str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        return response.text[:200].strip() or f"HTTP {response.status_code}"


def _seconds(retry_after: str | None) -> float:
    """The seconds of the header; 0 if it is missing or a date."""
    return float(retry_after) if retry_after is not None and retry_after.isdecimal() else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="*", help="the rows of the input `text`")
    parser.add_argument("--url", default="http://127.0.0.1:8501", help="the address of the server")
    parser.add_argument("--model", required=True, help="the model's name")
    parser.add_argument("--signature", default="serving_default", help="the signature to call")
    parser.add_argument("--input", action="append", default=[], metavar="NAME=FILE", help="one more input")
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds per attempt (default: 10)")
    arguments = parser.parse_args()
    inputs: dict[str, list[Any]] = {"text": arguments.texts} if arguments.texts else {}
    for pair in arguments.input:
        name, separator, path = pair.partition("=")
        if not separator:
            parser.error(f"--input must be NAME=FILE. Received: {pair}")
        inputs[name] = Path(path).read_text(encoding="utf-8").splitlines()
    if not inputs:
        parser.error("give texts, or --input")
    client = RestClient(arguments.url, arguments.model, timeout=arguments.timeout)
    print(json.dumps(client.predict(inputs, arguments.signature), ensure_ascii=False))


if __name__ == "__main__":
    try:
        main()
    except (OSError, ServingError) as error:
        sys.exit(f"rest_client: {error}")
