"""Hostile requests, one table for both servers: nesting, numbers, rows, names, JSON, Unicode, HTTP and slowness.

Each is sent over a connection of its own. A server must answer it within 10 seconds, by a refusal that states its
reason in one line, or rightly: with the answer to "a good film" for each row.
"""

import contextlib
import gzip
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

MOST_SECONDS = 10.0
TEXT = "a good film"
TYPE = "Content-Type: application/json"
# The statuses of refusals, and of those of a server that is busy or waited for the rest.
REFUSED, LATE = range(400, 500), (400, 408, 504)


class Case(NamedTuple):
    """One request.

    Args:
        parts: bytes to send, and seconds to wait between them.
        rows: the rows of a right answer; None for a refusal; -1 for any answer or refusal.
        statuses: the statuses that a refusal may have.
        ends: whether the client then shuts down its half of the connection.
    """

    parts: tuple
    rows: int | None = None
    statuses: object = REFUSED
    ends: bool = False


class Found(NamedTuple):
    """What came back: the status (0: closed without an answer), the body and the time."""

    status: int
    body: bytes
    seconds: float


def http(body, *lines, path, method="POST", host="127.0.0.1"):
    """The bytes of a request; a line replaces another of the same header."""
    lines = [f"Host: {host}", TYPE, f"Content-Length: {len(body)}", "Connection: close", *lines]
    headers = {line.partition(":")[0]: line for line in lines}
    return "\r\n".join([f"{method} {path} HTTP/1.1", *headers.values(), "", ""]).encode("utf-8") + body


def levels(count, inner='"a"'):
    return "[" * count + inner + "]" * count


def objects(count):
    return '{"a":' * count + "1" + "}" * count


def bodies():
    """Name -> a body, or a body and the rows of its answer."""
    ids = '{"inputs": {"token_ids": %s, "segment_ids": %s, "padding_mask": %s}, "signature_name": "token_ids"}'
    found = {}

    def add(name, body, rows=None):
        content = body if isinstance(body, bytes) else body.encode()
        found[name] = content, rows

    def inputs(name, text, rows=None):
        add(f"inputs {name}", f'{{"inputs": {text}}}', rows)

    add("good", json.dumps({"inputs": {"text": [TEXT]}}), 1)
    # Nesting.
    for count in (2, 3, 10, 33, 64, 254, 255, 256, 1000, 100_000):
        inputs(f"{count} deep", levels(count))
    for count in (2, 255, 1000):
        inputs(f"text {count} deep", f'{{"text": {levels(count)}}}')
        add(f"instances {count} deep", f'{{"instances": {levels(count)}}}')
        add(f"instances text {count} deep", f'{{"instances": [{{"text": {levels(count)}}}]}}')
    for count in (3, 255, 100_000):
        inputs(f"objects {count} deep", objects(count))
    add("name 255 deep", f'{{"inputs": ["a"], "signature_name": {levels(255)}}}')
    add("an unknown key 255 deep", f'{{"inputs": ["a"], "other": {levels(255)}}}')
    add("a million [", b"[" * 1_000_000)
    add("a million ]", b"]" * 1_000_000)
    add("a million keys open", b'{"a":' * 1_000_000)
    inputs("7 MB of empty lists", "[" + "[]," * 2_300_000 + "[]]")
    inputs("7 MB of empty objects", "[" + "{}," * 2_300_000 + "{}]")
    inputs("brackets in a text", json.dumps(["[" * 400_000]), -1)
    # Values that are no texts.
    for text in (
        "1",
        "0.5",
        "true",
        "null",
        "{}",
        "[]",
        "NaN",
        "Infinity",
        "-Infinity",
        "1e999",
        "1" * 400,
        "1" * 5000,
    ):
        inputs(f"a row {text[:20]} {len(text)}", f"[{text}]")
    for text in ('"a"', "1", "null", "true", "[]", "{}", "[[]]", "[[], []]", "[{}]", '["a", 7]', '["a", ["b"]]'):
        inputs(text, text)
    # Rows.
    inputs("no rows", '{"text": []}')
    inputs("1,024 rows", json.dumps([TEXT] * 1024), 1024)
    inputs("1,025 rows", json.dumps([TEXT] * 1025))
    inputs("100,000 rows", json.dumps([""] * 100_000))
    inputs("2.5 million rows", '["' + '","' * 2_500_000 + '"]')
    add("100,000 instances", json.dumps({"instances": [{"text": ""}] * 100_000}))
    add("instances", json.dumps({"instances": [{"text": TEXT}, {"text": TEXT}]}), 2)
    add("plain instances", json.dumps({"instances": [TEXT, TEXT]}), 2)
    for text in ("[]", "{}", "null", "1", '"a"', "[{}]", '[{"text": "a"}, {}]', '[{"text": "a"}, "b"]', '["a", null]'):
        add(f"instances {text}", f'{{"instances": {text}}}')
    inputs("600 kB of a text", json.dumps(["a" * 600_000]))
    inputs("100,001 bytes of a text", json.dumps(["a" * 100_001]), -1)
    inputs("300 kB of one word per row", json.dumps(["a" * 300_000] * 20), -1)
    inputs("300 kB of marks", json.dumps(["." * 300_000]), -1)
    # Ids.
    one = "[[0, 0, 0]]"
    for number in (-1, -(2**31), -(2**63), 10**6, 2**31 - 1, 2**31, 2**63, 2**64, 10**400):
        add(f"id {str(number)[:20]}", ids % (f"[[2, {number}, 3]]", one, "[[1, 1, 1]]"))
        add(f"segment {str(number)[:20]}", ids % ("[[2, 5, 3]]", f"[[0, {number}, 0]]", "[[1, 1, 1]]"))
    for text in ("1.0", "1e3", "true", '"1"', "null", "NaN", "1e999", "[]", "[1]", "{}", "0.5"):
        add(f"id {text}", ids % (f"[[2, {text}, 3]]", one, "[[1, 1, 1]]"))
    add("no ids", ids % ("[]", "[]", "[]"))
    add("rows without ids", ids % ("[[]]", "[[]]", "[[]]"))
    add("uneven ids", ids % ("[[2, 3], [2]]", "[[0, 0], [0]]", "[[1, 1], [1]]"))
    add("rows of other inputs", ids % ("[[2, 3]]", "[[0, 0], [0, 0]]", "[[1, 1]]"))
    add("widths of other inputs", ids % ("[[2, 3]]", "[[0]]", "[[1, 1, 1]]"))
    add("flat ids", ids % ("[2, 3]", "[0, 0]", "[1, 1]"))
    add("texts as ids", ids % ('["a"]', '["a"]', '["a"]'))
    wide = f"[[{','.join(['1'] * 100_000)}]]"
    add("100,000 ids", ids % (wide, wide, wide))
    wide = f"[[{','.join(['1'] * 9000)}]]"
    add("9,000 ids", ids % (wide, wide, wide))
    add("one of three inputs", '{"inputs": {"token_ids": [[2, 3]]}, "signature_name": "token_ids"}')
    add("ids without a name", '{"inputs": [[2, 3]], "signature_name": "token_ids"}')
    # Names.
    names = ("[]", "{}", "0", "1", "true", "false", "null", '" "', '"serve"', '"\\u0000"', '"__saved_model_init_op"')
    for name in (*names, f'"{"x" * 1_000_000}"', '["serving_default"]'):
        add(f"name {name[:30]}", f'{{"inputs": ["a"], "signature_name": {name}}}')
    add("an empty name", json.dumps({"inputs": [TEXT], "signature_name": ""}), 1)
    for name in ("", "TEXT", "text ", "__class__", "texts", "inputs"):
        inputs(f"named {name!r}", json.dumps({name: [TEXT]}))
    inputs("one too many", json.dumps({"text": ["a"], "text_pair": ["b"]}))
    inputs("100,000 names", json.dumps({f"name {number}": [] for number in range(100_000)}))
    add("both", json.dumps({"inputs": ["a"], "instances": ["a"]}))
    add("neither", b"{}")
    add("an unknown key", json.dumps({"inputs": [TEXT], "other": [[1]]}), 1)
    # JSON.
    for text in (
        "",
        " ",
        "{",
        "}",
        "[",
        '"',
        "1",
        "null",
        "[1]",
        '"a"',
        "nul",
        "{'inputs': ['a']}",
        '{"inputs": ["a",]}',
    ):
        add(f"body {text}", text)
    for text in (
        '{"inputs": ["a"]',
        '{"inputs": ["a]}',
        '{"inputs" ["a"]}',
        '{"inputs": ["a"]} {}',
        '{"inputs": ["\\x"]}',
    ):
        add(f"body {text}", text)
    add("a comment", '{"inputs": ["a"] /* text */}')
    add("the same key twice", '{"inputs": ["a"], "inputs": ["b"]}')
    add("the same input twice", '{"inputs": {"text": ["a"], "text": ["b"]}}')
    add("a million equal keys", "{" + '"a":1,' * 1_000_000 + '"a":1}')
    add("quotes without an end", b'{"inputs": ["' + b'\\"' * 3_000_000)
    add("backslashes", b'{"inputs": ["' + b"\\" * 5_000_000)
    # Unicode.
    good = json.dumps({"inputs": [TEXT]})
    for encoding in ("utf-16", "utf-32", "utf-16-le", "utf-8-sig"):
        add(encoding, good.encode(encoding))
    for content in (
        b"\xff\xfe",
        b"\xc0\xaf",
        b"\xe2\x82",
        b"\xed\xa0\x80",
        b"\xf5\x80\x80\x80",
        b"\x80",
        b"\xe9",
        b"\n",
    ):
        add(f"bytes {content!r}", b'{"inputs": ["' + content + b'"]}')
    add("a control character", b'{"inputs": ["\x00"]}')
    add("gzip", gzip.compress(good.encode()))
    for text in ("\\ud800", "\\udc00", "\\udc00\\ud800", "a\\udfffb"):
        add(f"surrogates {text}", f'{{"inputs": ["{text}"]}}')
    add("a pair of surrogates", '{"inputs": ["\\ud83d\\ude00"]}', -1)
    add("NUL as an escape", '{"inputs": ["\\u0000"]}', -1)
    add("a surrogate in a name", '{"inputs": {"\\ud800": ["a"]}}')
    return found


def requests(path):
    """Name -> `Case`, for the model whose `:predict` has a path."""
    cases = {name: Case((http(body, path=path),), rows) for name, (body, rows) in bodies().items()}
    good = json.dumps({"inputs": [TEXT]}).encode()

    def add(name, *parts, rows=None, statuses=REFUSED, ends=False):
        cases[name] = Case(parts, rows, statuses, ends)

    def line(name, *lines, rows=None, statuses=REFUSED, **options):
        add(name, http(good, *lines, path=path, **options), rows=rows, statuses=statuses)

    # Methods and addresses.
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "HEAD", "CONNECT", "BREW", "post", "GET", "P" * 9000):
        line(f"method {method[:10]}", method=method, statuses=range(400, 600))
    for other in ("/v1", f"{path}/", f"{path}x", "/v1/models/other:predict", "/../../etc/passwd", "/%2e%2e/%00"):
        add(f"path {other}", http(good, path=other), statuses=range(400, 500))
    for other in ("/" + "x" * 20_000, "/" + "x" * 200_000, "*", "", "x", "//", "/\u00e9", f"{path} x"):
        add(f"path {other[:8]} {len(other)}", http(good, path=other), statuses=range(400, 500))
    add("a query", http(good, path=f"{path}?x=1&y"), rows=1)
    # Lengths.
    for length in ("-1", "abc", "+5", "5_0", "0x10", "", "1e3", "9" * 30, "9" * 5000, "5, 5", str(2**63), "99999999"):
        line(f"length {length[:9]}", f"Content-Length: {length}", statuses=(400, 408, 411, 413, 431, 504))
    line("a length too short", "Content-Length: 5")
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{TYPE}\r\n"
    add("no length", f"{head}\r\n".encode() + good)
    add("two lengths", f"{head}Content-Length: 5\r\nContent-Length: {len(good)}\r\n\r\n".encode() + good)
    add(
        "a length and chunks",
        f"{head}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".encode(),
        rows=-1,
    )
    chunked = f"{head}Transfer-Encoding: chunked\r\n\r\n".encode()
    add("chunks", chunked + b"%x\r\n%s\r\n0\r\n\r\n" % (len(good), good), rows=-1)
    add("chunks of one byte", chunked + b"".join(b"1\r\n%c\r\n" % byte for byte in good) + b"0\r\n\r\n", rows=-1)
    for size in (b"zz", b"-1", b"f" * 20, b"", b"ffffffff", b"5;" + b"x" * 100_000):
        add(f"a chunk of {size[:9]!r}", chunked + size + b"\r\nabc", statuses=(*LATE, 411, 413, 431))
    add("chunks of gzip", f"{head}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n".encode(), rows=-1)
    large = b'{"inputs": ["%s"]}' % (b"a" * 17_000_000)
    add("17 MB", http(large, path=path), statuses=(413,))
    add("17 MB of chunks", chunked + b"%x\r\n%s\r\n0\r\n\r\n" % (len(large), large), statuses=(411, 413))
    add("8 MB of spaces", http(b" " * 8_000_000, path=path))
    add("8 MB of numbers", http(b'{"inputs": [%s1]}' % (b"1," * 3_900_000), path=path))
    # Headers.
    for media in ("text/plain", "multipart/form-data; boundary=x", "text/html", "application/xml", "x" * 5000):
        line(f"type {media[:20]}", f"Content-Type: {media}", statuses=(415,))
    line("charset", "Content-Type: application/json; charset=utf-16", statuses=(415,))
    line("charset of UTF-8", 'Content-Type: application/json; charset="UTF-8"', rows=1)
    line("the type of curl", "Content-Type: application/x-www-form-urlencoded", rows=1)
    line("compressed", "Content-Encoding: gzip", rows=-1)
    line("another site", "Sec-Fetch-Site: cross-site", statuses=(403,))
    line("100 continue", "Expect: 100-continue", rows=1)
    line("another expectation", "Expect: a miracle", rows=-1)
    line("200 headers", *(f"X-{number}: a" for number in range(200)), rows=-1)
    line("a long header", f"X-Long: {'a' * 100_000}", rows=-1)
    line("a header without a colon", "X-Other", rows=-1)
    line("NUL in a header", "X-Other: a\0b", rows=-1)
    line("a folded header", "X-Other: a\r\n b", rows=-1)
    line("a bare CR", "X-Other: a\rb", rows=-1)
    line("no port", host="localhost", rows=1)
    for first in (
        "GET",
        "GET /",
        "GET / HTTP/0.9",
        "GET / HTTP/9.9",
        "PRI * HTTP/2.0",
        " ",
        "\0" * 100,
        "GET  /  HTTP/1.1",
    ):
        add(f"first line {first[:16]!r}", f"{first}\r\nHost: 127.0.0.1\r\n\r\n".encode(), rows=-1, ends=True)
    add("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)), ends=True, rows=-1)
    add("noise", bytes(range(255, -1, -1)) * 400, ends=True, rows=-1)
    add("line ends", b"\r\n" * 1000, ends=True, rows=-1)
    # Clients that stop or are slow.
    whole = http(good, path=path)
    add("half a body, then the end", whole[:-9], ends=True, statuses=(0, *LATE))
    add("half a body, then nothing", whole[:-9], statuses=LATE)
    add("8 MB that do not come", http(b"{", "Content-Length: 8000000", path=path), statuses=LATE)
    return cases


# Of the first server only, which nothing stands in front of; the guide leaves these to a proxy for the second one.
def direct(path):
    good = json.dumps({"inputs": [TEXT]}).encode()
    cases = {}
    for host in (
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "127.0.0.1:x",
        "",
    ):
        cases[f"host {host}"] = Case((http(good, path=path, host=host),), None, (403,))
    for origin in ("http://evil.example", "null", "http://localhost:3000", "https://127.0.0.1", ""):
        cases[f"origin {origin}"] = Case((http(good, f"Origin: {origin}", path=path),), None, (403,))
    cases["own origin"] = Case((http(good, "Origin: http://127.0.0.1", path=path),), 1)
    cases["two hosts"] = Case((http(good, path=path).replace(b"\r\n", b"\r\nHost: evil.example\r\n", 1),), None, (403,))
    whole = http(good, path=path)
    cases["no request"] = Case((), None, LATE)
    cases["half a head"] = Case((whole[:40],), None, LATE)
    cases["slow head"] = Case(tuple(part for byte in whole[:40] for part in (bytes([byte]), 0.2)), None, LATE)
    return cases


def send(port, case, *, timeout=MOST_SECONDS):
    """Sends a request, and waits for the answer."""
    start, received = time.monotonic(), b""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        with contextlib.suppress(ConnectionError):  # an early refusal; it is read below
            for part in case.parts:
                if isinstance(part, bytes):
                    connection.sendall(part)
                else:
                    time.sleep(part)
            if case.ends:
                connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError, TimeoutError):
            while chunk := connection.recv(1 << 16):
                received += chunk
                if _is_whole(received):
                    break
    seconds = time.monotonic() - start
    head, _, body = received.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n").partition(b"\r\n\r\n")
    status = int(head.split(b" ")[1]) if head.startswith(b"HTTP/1.") else 0
    return Found(status, body, seconds)


def _is_whole(received):
    head, end, body = received.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n").partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return bool(end and lengths) and len(body) >= int(lengths[0].partition(b":")[2])


def fault(name, case, found, right):
    """What is wrong with an answer, or "".

    Args:
        name: the case's name.
        case: the request.
        found: what came back.
        right: the label of the text.
    """
    if found.seconds >= MOST_SECONDS:
        return f"{name}: {found.seconds:.1f} seconds"
    if found.status == 200 and case.rows is not None:
        if case.rows < 0:
            return ""
        content = json.loads(found.body)
        if "predictions" in content:
            labels = [row["label"] for row in content["predictions"]]
        else:
            labels = content["outputs"]["label"]
        return "" if labels == [right] * case.rows else f"{name}: {found.body[:200]!r}"
    if case.rows is not None and case.rows < 0:
        return "" if found.status == 0 or 400 <= found.status < 600 else f"{name}: {found.status}"
    if case.rows is None and found.status in (503, 504):  # busy with the others
        return ""
    if case.rows is not None or found.status not in case.statuses:
        return f"{name}: {found.status} {found.body[:200]!r}"
    reason = found.body.decode().strip()
    if reason.endswith("\r\n0"):  # a chunk, as uvicorn sends it
        reason = reason.split("\r\n")[1]
    if name.startswith("method HEAD") or found.status == 0:
        return ""
    if not reason or "\n" in reason or len(reason) > 1500 or "Graph execution" in reason or "Traceback" in reason:
        return f"{name}: {found.status} without a reason in one line: {reason[:200]!r}"
    return ""


def faults(port, cases, right, *, clients=4):
    """Sends all requests, some at a time; what is wrong with the answers.

    Those with a fault are sent again, one by one: on a busy machine, a large one among others may come too late.
    """

    def one(item):
        name, case = item
        try:
            return fault(name, case, send(port, case), right)
        except OSError as error:
            return f"{name}: {error!r}"

    with ThreadPoolExecutor(clients) as pool:
        again = [item for item, told in zip(cases.items(), pool.map(one, cases.items()), strict=True) if told]
    return [told for told in map(one, again) if told]
