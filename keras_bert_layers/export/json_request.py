"""Requests in JSON, checked before any of them becomes a tensor. `serve` and `examples/serving` share it.

TensorFlow ends its process for some values, such as a list of 255 levels, and has no limits of its own. So a value gets
to it only as an array of the shape and the dtype that the signature states. Neither TensorFlow nor Keras is imported.
"""

import itertools
import json
import reprlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

# The body of a request: some 80 texts of 100,000 bytes, which is as much as an exported model reads of one.
MAX_BYTES = 8 * 1024 * 1024
# Clients that have more send several requests, which a server can put in order.
MAX_ROWS = 1024
# All of a text is copied and looked at, however little of it is read.
MAX_TEXT_BYTES = 512 * 1024
# From a complete request to its answer.
SECONDS = 10.0

# Three inputs of 1,024 rows of 32 choices are 100,000 lists. A million take over a second to read.
_MAX_PARTS = 250_000
# Choices of token ids have 5 levels. Python's reader of JSON fails at some 1,000.
_MAX_DEPTH = 32
# The numbers of a row: 128 choices of 512 ids. Vectors of so many ids still fit into memory.
_MAX_ROW_NUMBERS = 65_536
DEFAULT_SIGNATURE = "serving_default"
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
# The beginnings of lines in which TensorFlow reports where an error happened.
_NOISE = ("Graph execution error", "Detected at node", "<stack traces", "[[{{node", "(0)", "(1)", "Stack trace for op")

#: The inputs of a signature: name -> `(shape, dtype)`, as in `Signature.inputs`.
Inputs = Mapping[str, tuple[tuple[int | None, ...], str]]

_shown = reprlib.Repr()
_shown.maxstring = _shown.maxother = _shown.maxlong = 60


class RequestError(ValueError):
    """A request is not answered; the message is for its sender.

    Args:
        message: what is wrong, in one line. It may quote the request.
        status: the HTTP status.
        code: one word for it, for programs, the log and the metrics.
    """

    def __init__(self, message: str, *, status: int = 400, code: str = "invalid"):
        super().__init__(message)
        self.status = status
        self.code = code


class PredictRequest(NamedTuple):
    """What `:predict` of TensorFlow Serving takes.

    Args:
        signature: the signature's name.
        values: name -> a list, one entry per row; or the list alone.
        in_columns: whether it came as `inputs`, and not as `instances`.
    """

    signature: str
    values: Any
    in_columns: bool


def reason(error: Exception) -> str:
    """The line of an error of TensorFlow that states what is wrong, without the lines on where it happened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    useful = [line for line in lines if not line.startswith(_NOISE)]
    return (useful or lines or [type(error).__name__])[0][:500]


def check_headers(headers: Any, *, body: str = "application/json") -> None:
    """Refuses what no client of the server sends, but the page of another site can have a browser send.

    Args:
        headers: the headers of a request, a mapping that takes a name in any case.
        body: the media type of its body. `application/x-www-form-urlencoded`, which `curl --data` states for JSON, and
            none at all are taken too; what a form of a page can send in that type is not JSON.

    Raises:
        RequestError: another site's page has sent it, with status 403; or the body is of another type, with 415.
    """
    if headers.get("Sec-Fetch-Site", "none") in ("cross-site", "same-site"):
        raise RequestError("pages of other sites are not answered (Sec-Fetch-Site)", status=403, code="foreign_page")
    stated, _, parameters = headers.get("Content-Type", body).lower().partition(";")
    charset = parameters.partition("charset=")[2].strip(' "')
    if stated.strip() not in (body, "application/x-www-form-urlencoded") or charset not in ("", "utf-8", "us-ascii"):
        received = _shown.repr(headers["Content-Type"])
        raise RequestError(f"Content-Type must be {body}, in UTF-8. Received: {received}", status=415, code="no_json")


def parsed(body: bytes) -> dict[str, Any]:
    """The JSON object of a body.

    Raises:
        RequestError: it is not one, a key occurs twice, or it has too many lists and objects or too many levels.
    """
    # What stands outside of strings: every second part, without the quotes that strings hold.
    outside = b"".join(body.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    brackets = outside.translate(None, _NOT_BRACKETS)
    if brackets.count(b"[") + brackets.count(b"{") > _MAX_PARTS:
        raise RequestError(f"the request must hold at most {_MAX_PARTS} lists and objects", code="too_many_parts")
    for _ in range(_MAX_DEPTH):
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    if brackets.count(b"[") + brackets.count(b"{") > _MAX_DEPTH:
        raise RequestError(f"JSON Parse error: must be nested at most {_MAX_DEPTH} deep", code="no_json")
    try:
        content = json.loads(body.decode("utf-8"), object_pairs_hook=_object, parse_constant=_refused_constant)
    except RequestError:
        raise
    except UnicodeDecodeError as error:
        raise RequestError(f"JSON Parse error: {error.reason} at offset: {error.start}", code="no_json") from error
    except json.JSONDecodeError as error:
        raise RequestError(f"JSON Parse error: {error.msg} at offset: {error.pos}", code="no_json") from error
    except (ValueError, RecursionError) as error:  # an integer of more than 4,300 digits
        raise RequestError(f"JSON Parse error: {reason(error)}", code="no_json") from error
    if not isinstance(content, dict):
        raise RequestError("the request must be a JSON object", code="no_json")
    return content


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RequestError("JSON Parse error: an object must not have a key twice", code="no_json")
    return found


def _refused_constant(name: str) -> Any:
    raise RequestError(f"JSON Parse error: JSON has no {name}", code="no_json")


def predict_request(body: Mapping[str, Any]) -> PredictRequest:
    """The parts of a request in the form of TensorFlow Serving's `:predict`; RequestError for any other."""
    name = body.get("signature_name", "")
    if not isinstance(name, str):
        raise RequestError(f"signature_name must be a string. Received: {_shown.repr(name)}")
    if ("inputs" in body) == ("instances" in body):
        raise RequestError('send either inputs or instances, such as {"instances": ["A text."]}')
    values = body["inputs"] if "inputs" in body else _columns(body["instances"])
    return PredictRequest(name or DEFAULT_SIGNATURE, values, "inputs" in body)


def _columns(instances: Any) -> Any:
    """Rows as columns: `[{"text": "a"}, {"text": "b"}]` as `{"text": ["a", "b"]}`; plain rows as they are."""
    if not isinstance(instances, list) or not instances:
        raise RequestError("instances must be a list that is not empty")
    if not any(isinstance(instance, dict) for instance in instances):
        return instances
    names = instances[0].keys() if isinstance(instances[0], dict) else set()
    if not all(isinstance(instance, dict) and instance.keys() == names for instance in instances):
        raise RequestError("instances must all have the same inputs")
    return {name: [instance[name] for instance in instances] for name in names}


def arrays(signature: str, values: object, signatures: Mapping[str, Inputs]) -> dict[str, np.ndarray]:
    """The inputs of a request as arrays, strings as bytes in arrays of objects.

    Args:
        signature: a signature's name.
        values: name -> a list, one entry per row; or the list alone, if the signature has one input.
        signatures: the inputs of every signature.

    Raises:
        RequestError: the signature does not take them; the message names the row.
    """
    if signature not in signatures:
        raise RequestError(f"signature_name must be one of {sorted(signatures)}. Received: {_shown.repr(signature)}")
    inputs = signatures[signature]
    if not isinstance(values, dict):
        if len(inputs) != 1:
            raise RequestError(f"inputs must be an object with {sorted(inputs)}. Received: {_shown.repr(values)}")
        values = dict.fromkeys(inputs, values)
    if values.keys() != inputs.keys():
        received = _shown.repr(sorted(values))
        raise RequestError(f"{signature!r} takes the inputs {sorted(inputs)}. Received: {received}")
    found = {name: _array(name, values[name], *inputs[name]) for name in inputs}
    lengths = {name: len(array) for name, array in found.items() if array.ndim}
    if len(set(lengths.values())) > 1:
        raise RequestError(f"all inputs must have the same number of rows. Received: {lengths}")
    return found


def check_size(given: Mapping[str, np.ndarray]) -> None:
    """RequestError if the arrays of a request have more rows than `MAX_ROWS`, or a text of over `MAX_TEXT_BYTES`."""
    num_rows = max((len(array) for array in given.values() if array.ndim), default=1)
    if num_rows > MAX_ROWS:
        rule = f"the rows of a request must be at most {MAX_ROWS}"
        raise RequestError(f"{rule}. Received: {num_rows}. Send several requests.", code="too_many_rows")
    texts = itertools.chain.from_iterable(array.ravel() for array in given.values() if array.dtype == object)
    longest = max(map(len, texts), default=0)
    if longest > MAX_TEXT_BYTES:
        rule = f"the bytes of a text must be at most {MAX_TEXT_BYTES}"
        raise RequestError(f"{rule}. Received: {longest}", code="too_long")


def _array(name: str, value: object, shape: tuple[int | None, ...], dtype: str) -> np.ndarray:
    """One input. The value is opened level by level, as deep as the shape, and never deeper."""
    level: list[Any] = [value]
    sizes: list[int] = []

    def refuse(index: int, rule: str) -> RequestError:
        place = f"row {index * sizes[0] // len(level)} of the " if sizes else ""
        return RequestError(f"{place}input {name!r} must be {rule}. Received: {_shown.repr(level[index])}")

    for axis, size in enumerate(shape):
        for index, part in enumerate(level):
            if not isinstance(part, list) or not part:
                raise refuse(index, "a list that is not empty")
        lengths = set(map(len, level))
        if len(lengths) > 1:
            raise RequestError(f"input {name!r} must have rows of one length; fill up the shorter ones")
        if size not in (None, *lengths):
            raise RequestError(f"input {name!r} must have {size} entries on axis {axis}. Received: {lengths.pop()}")
        level = list(itertools.chain.from_iterable(level))
        sizes.append(lengths.pop())
    is_taken, rule = _taken(dtype)
    may_be_missing = dtype.startswith("float") and len(shape) == 1  # of a column beside a text; `null` becomes NaN
    for index, part in enumerate(level):
        if not is_taken(part) and not (part is None and may_be_missing):
            raise refuse(index, rule)
    if dtype == "string":
        return np.array([_encoded(text, index, refuse) for index, text in enumerate(level)], object).reshape(sizes)
    if len(level) > _MAX_ROW_NUMBERS * (sizes or [1])[0]:
        raise RequestError(f"input {name!r} must have at most {_MAX_ROW_NUMBERS} numbers in a row", code="too_wide")
    return np.array(level, dtype).reshape(sizes)


def _encoded(text: str, index: int, refuse: Callable[[int, str], RequestError]) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise refuse(index, f"text; it holds half a surrogate pair at {error.start}") from error


def _taken(dtype: str) -> tuple[Callable[[Any], bool], str]:
    """What is a value of a dtype, and the rule for errors. True is not a number."""
    if dtype == "string":
        return lambda value: isinstance(value, str), "a string"
    if dtype == "bool":
        return lambda value: isinstance(value, bool), "true or false"
    if dtype.startswith(("int", "uint")):
        bounds = np.iinfo(dtype)
        return (
            lambda value: type(value) is int and bounds.min <= value <= bounds.max,
            f"an integer of {bounds.bits} bits",
        )
    if dtype in ("float16", "float32", "float64"):
        most = float(np.finfo(dtype).max)
        return lambda value: type(value) in (int, float) and abs(value) <= most, f"a number of {dtype}"
    return lambda value: False, f"of {dtype}, which is not taken from JSON"


def plain(value: Any) -> Any:
    """An array, or a value of one, as lists, numbers and strings; a character cut in two becomes U+FFFD."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.ndarray) and value.dtype == object:
        return [plain(entry) for entry in value]
    return value.tolist()
