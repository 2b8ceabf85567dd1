"""The limits of the server, each from an environment variable."""

from __future__ import annotations

import os
from dataclasses import dataclass

from keras_bert_layers.export.json_request import MAX_BYTES, MAX_ROWS, MAX_TEXT_BYTES, SECONDS, RequestError


@dataclass(frozen=True)
class Limits:
    """What the server accepts, and how much it does at a time. Tokens are estimated; see `token_estimate.py`."""

    num_bytes: int = MAX_BYTES
    """The body of a request."""
    rows: int = MAX_ROWS
    """The rows of a request."""
    text_tokens: int = MAX_TEXT_BYTES // 4
    """One text. The model reads no more than its own length; this bounds what has to be tokenized."""
    tokens: int = 524_288
    """What the model reads for one request."""
    seconds: float = SECONDS
    """From the first byte of a request to its answer."""
    waiting: int = 256
    """Requests in progress."""
    batch_tokens: int = 2048
    """What the model reads in one step."""
    drain_seconds: float = 30.0
    """From SIGTERM to the end."""

    @classmethod
    def from_environment(cls) -> Limits:
        """The limits that `VARIABLES` names, and the defaults of the others."""
        given = {field: os.environ[name] for field, name in VARIABLES.items() if name in os.environ}
        limits = cls(**{field: type(getattr(cls, field))(value) for field, value in given.items()})
        for field, name in VARIABLES.items():
            if not getattr(limits, field) > 0:
                raise ValueError(f"{name} must be larger than 0. Received: {getattr(limits, field)}")
        return limits

    def check(self, field: str, received: int, what: str, *, status: int = 400) -> None:
        """Raises a `RequestError` that names the limit and what came, if it is more."""
        if received > getattr(self, field):
            message = f"{what} must be at most {getattr(self, field)} ({VARIABLES[field]}). Received: {received}"
            raise RequestError(message, status=status, code=f"too_many_{field.removeprefix('num_')}")


VARIABLES = {
    "num_bytes": "MAX_BYTES",
    "rows": "MAX_ROWS",
    "text_tokens": "MAX_TEXT_TOKENS",
    "tokens": "MAX_TOKENS",
    "seconds": "REQUEST_SECONDS",
    "waiting": "MAX_WAITING",
    "batch_tokens": "MAX_BATCH_TOKENS",
    "drain_seconds": "DRAIN_SECONDS",
}
