"""Random damage to files by a seed: to their bytes, and to the values in their JSON."""

import copy
import json

NASTY = [
    *(None, True, False, 0, 1, -1, 2, 3, 7, 2**31, 2**62, 2**63, 2**64 - 1, 10**30, -(10**30), 10**400),
    *(0.5, -0.0, 1e308, float("nan"), float("inf")),
    *("", "F16", "F64", "BF16", "I64", "[CLS]", "[NEW]", "##", "\ud800", "\0", "x" * 999),
    *([], [[]], {}, {"": None}, [0], [-1, 2**63], [0, 2**62, 2**62], [1] * 99),
]


def damaged_bytes(rng, content):
    """A copy with one to three bits, bytes or slices changed, cut, doubled or thrown in."""
    content = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        start = rng.randrange(len(content) + 1)
        length = rng.choice((1, 1, 2, 8, 40))
        kind = rng.choice(("bit", "byte", "cut", "double", "insert", "truncate", "digit"))
        if kind == "bit" and start < len(content):
            content[start] ^= 1 << rng.randrange(8)
        elif kind == "byte" and start < len(content):
            content[start] = rng.choice(b'\0\xff "[]{}:,-.eE0159\\')
        elif kind == "cut":
            del content[start : start + length]
        elif kind == "double":
            content[start:start] = content[start : start + length]
        elif kind == "insert":
            content[start:start] = rng.randbytes(length)
        elif kind == "truncate":
            del content[start:]
        else:
            digits = [index for index, byte in enumerate(content) if 48 <= byte <= 57]
            if digits:
                content[rng.choice(digits)] = rng.choice(b"0123456789")
    return bytes(content)


def damaged_values(rng, value):
    """A copy of JSON values with one to three of them replaced, swapped, renamed, doubled, nested or left out."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = list(_places(value))
        if not places:
            return rng.choice(NASTY)
        parent, key = rng.choice(places)
        kind = rng.choice(("replace", "replace", "replace", "remove", "swap", "rename", "nest", "double"))
        if kind == "replace":
            parent[key] = copy.deepcopy(rng.choice(NASTY))
        elif kind == "remove":
            del parent[key]
        elif kind == "swap":
            other, place = rng.choice(places)
            parent[key], other[place] = copy.deepcopy(other[place]), copy.deepcopy(parent[key])
        elif kind == "rename" and isinstance(parent, dict):
            parent[rng.choice([str(name) for name in NASTY if isinstance(name, str)])] = parent.pop(key)
        elif kind == "nest":
            for _ in range(rng.choice((1, 2, 90))):
                parent[key] = [parent[key]]
        elif isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))
    return value


def damaged_json(rng, value):
    """The bytes of a JSON file that is damaged in its values, in its bytes, or in both."""
    if rng.random() < 0.7:
        value = damaged_values(rng, value)
    content = json.dumps(value, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    return damaged_bytes(rng, content) if rng.random() < 0.5 else content


def _places(value):
    """Every parent with a key of it, at any depth."""
    pending = [value]
    while pending:
        parent = pending.pop()
        if isinstance(parent, dict | list):
            keys = list(parent) if isinstance(parent, dict) else range(len(parent))
            yield from ((parent, key) for key in keys)
            pending += [parent[key] for key in keys]
