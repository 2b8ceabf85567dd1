"""Values of JSON to the model, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from request_error import RequestError


def encoded(where: str, text: Any) -> bytes:
    """A text of a request in UTF-8; `where` is its place, for the error."""
    if not isinstance(text, str):
        raise RequestError(f"{where} must be a string. Received: {short(text)}")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RequestError(f"{where} must be text; it holds half a surrogate pair at {error.start}") from error


def short(value: Any) -> str:
    """A value as text for an error, at most some 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def plain(value: Any) -> Any:
    """Lists, numbers and strings for JSON; text cut inside a character gets a replacement character."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.ndarray) and value.dtype == object:
        return [plain(entry) for entry in value]
    return value.tolist()
