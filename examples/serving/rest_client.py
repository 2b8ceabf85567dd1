"""Ask a served model over REST: TensorFlow Serving, or `service.py`, which speaks the same.

    python3 examples/serving/rest_client.py --model sentiment "A joy to watch." "Two dull hours."
    ... --url http://127.0.0.1:8501                where the server is (the default)
    ... --input text_pair=document.txt             one more input, a line of the file a row
    ... --signature token_ids                      another signature

Needs `requests`, and neither TensorFlow nor this package. Prints one line of JSON.
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

# Nobody has answered: the server is overloaded, restarting or out of time. Anything else is the same a second time.
RETRIED = (429, 502, 503, 504)


class ServingError(Exception):
    """The server's own words why there is no answer, or that it could not be reached."""


class RestClient:
    """Asks one model, again where it makes sense, and never for longer than it is told.

    Requests only read, so one that may have been answered can be sent again.

    Args:
        url: the server, as `"http://127.0.0.1:8501"`.
        model: the model's name.
        timeout: seconds that one try may take.
        attempts: tries for a request, the first included.
        pause: seconds before the second try; doubled for each further one, and drawn between the half and the whole, so
            that many clients do not come back at once.
        deadline: seconds that all tries together may take.

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
        self._session.trust_env = False  # a proxy of the environment is not asked for a machine of one's own

    def predict(
        self, inputs: dict[str, list[Any]], signature: str = "serving_default", *, version: int | None = None
    ) -> dict[str, Any]:
        """What a signature answers: name -> one entry a row.

        Args:
            inputs: name -> one entry a row, e.g. `{"text": ["Good.", "Bad."]}`.
            signature: the signature's name.
            version: the version that must answer; the newest if None.

        Returns:
            The outputs by name; an only output, whose name the REST interface leaves out, as `"output"`.

        Raises:
            ServingError: the server refuses the request, or no try got an answer in time.
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
        """Returns when a version answers; ServingError if none does in time."""
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
        """One request, tried again after what may pass."""
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
    """The JSON object of a good answer; ServingError for any other."""
    if response.status_code != requests.codes.ok:
        raise ServingError(f"{response.url}: HTTP {response.status_code}: {_reason(response)}")
    return response.json()


def _reason(response: requests.Response) -> str:
    """What the server says went wrong: `error` of its JSON, or the beginning of whatever came."""
    try:
        return str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        return response.text[:200].strip() or f"HTTP {response.status_code}"


def _seconds(retry_after: str | None) -> float:
    """The header's number of seconds; 0 where there is none or a date."""
    return float(retry_after) if retry_after is not None and retry_after.isdecimal() else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="*", help="the rows of the input `text`")
    parser.add_argument("--url", default="http://127.0.0.1:8501", help="where the server is")
    parser.add_argument("--model", required=True, help="the model's name")
    parser.add_argument("--signature", default="serving_default", help="what to ask for")
    parser.add_argument("--input", action="append", default=[], metavar="NAME=FILE", help="one more input")
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds a try (default: 10)")
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
