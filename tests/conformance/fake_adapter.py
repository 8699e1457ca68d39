"""An adapter that misbehaves on purpose, as its first argument says. Run as a program by the tests of the runner."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from typing import Any

HELLO: dict[str, Any] = {
    "protocol": [1, 0],
    "implementation": {"name": "fake", "version": "1", "language": "python"},
    "randomness": "explicit",
    "operations": {"echo": {}, "field.add": {}},
}


def send(text: str) -> None:
    """Write one line."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def split(text: str) -> None:
    """Write one line in two parts, with a pause between."""
    sys.stdout.write(text[:7])
    sys.stdout.flush()
    time.sleep(0.005)
    send(text[7:])


def refused(line: bytes) -> dict[str, Any] | None:
    """Return the rejection of a line whose form is wrong; nothing when it is right."""
    try:
        request = json.loads(line.decode(), parse_constant=float_of_nothing)
    except ValueError:
        request = None
    if not isinstance(request, dict) or type(request.get("id")) is not int:
        return {"id": None, "reject": {"code": "malformed"}}
    types = {"op": str, "params": dict, "rand": dict}
    body = {"rand": {}, **request}
    wrong = set(body) != {"id", *types} or any(not isinstance(body[name], kind) for name, kind in types.items())
    if wrong or (request["op"] == "field.add" and not well_formed(body)):
        return {"id": request["id"], "reject": {"code": "malformed"}}
    return None


def float_of_nothing(name: str) -> float:
    """Refuse NaN and the infinities, which are not JSON."""
    raise ValueError(name)


def well_formed(body: dict[str, Any]) -> bool:
    """Return whether the members of field.add have their form."""
    forms = {"q": r"0|-?[1-9][0-9]*", "a": "([0-9a-f]{8})*", "b": "([0-9a-f]{8})*"}
    texts = {name: body["params"].get(name, "0") for name in forms}
    whole = not body["rand"] and all(isinstance(text, str) for text in texts.values())
    return whole and all(re.fullmatch(form, texts[name]) or name not in body["params"] for name, form in forms.items())


def vector(text: str) -> list[int]:
    """Return the elements of a vector."""
    data = bytes.fromhex(text)
    return [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]


def packed(values: list[int]) -> str:
    """Return a vector of elements."""
    return b"".join(value.to_bytes(4, "little") for value in values).hex()


def add(params: dict[str, Any]) -> dict[str, Any]:
    """Return a right answer to field.add, and the right rejections."""
    if set(params) != {"q", "a", "b"}:
        return {"reject": {"code": "malformed"}}
    q, a, b = int(params["q"]), vector(params["a"]), vector(params["b"])
    if not 2 <= q <= 2**32:
        return {"reject": {"code": "bad_param"}}
    if len(a) != len(b):
        return {"reject": {"code": "length_mismatch"}}
    if any(x >= q for x in a + b):
        return {"reject": {"code": "noncanonical"}}
    return {"result": {"value": packed([(x + y) % q for x, y in zip(a, b, strict=True)])}}


def right(request: dict[str, Any]) -> dict[str, Any]:
    """Return the right answer to a request."""
    op, params = request["op"], request["params"]
    if op == "hello":
        return {"result": HELLO}
    if op == "echo":
        return {"result": params}
    return add(params) if op == "field.add" else {"unsupported": True}


def main(fault: str) -> None:
    """Answer requests with one fault."""
    if fault == "noise-at-start":
        send("loading the library …")
    if fault == "huge-stderr":
        sys.stderr.write("warning\n" * 200_000)
    calls = 0
    longest = 65_536 if fault == "64-kib-line" else None
    for whole in sys.stdin.buffer:
        line = whole[:longest]
        rejection = refused(line)
        if rejection:
            send(json.dumps(rejection))
            continue
        request = json.loads(line)
        answer = {"id": request["id"], **right(request)}
        adding = request["op"] == "field.add"
        calls += adding
        wide = adding and len(vector(request["params"].get("a", ""))) > 2
        if fault == "crash" and wide:
            os._exit(3)
        if fault == "hang" and wide:
            time.sleep(60)
        if fault == "noise" and wide:
            send("adding …")
        if fault == "wrong-id" and wide:
            answer["id"] += 1
        if fault == "wrong-value" and wide and "result" in answer:
            answer["result"]["value"] = packed([0] * len(vector(answer["result"]["value"])))
        if fault == "two-answers" and wide:
            answer["error"] = {"message": "and broken too"}
        if fault == "other-code" and "reject" in answer:
            answer["reject"]["code"] = "other"
        if fault == "unknown-code" and "reject" in answer:
            answer["reject"]["code"] = "because"
        if fault == "reject-everything" and adding:
            answer = {"id": request["id"], "reject": {"code": "bad_param"}}
        if fault == "state-leak" and adding and calls > 3 and "result" in answer:
            answer["result"]["value"] = packed([])
        if fault == "early-exit" and calls > 2:
            return
        if fault == "random" and adding and "result" in answer:
            answer["result"]["value"] = os.urandom(4 * len(vector(answer["result"]["value"]))).hex()
        if fault == "closes-input" and wide:
            os.close(0)
            time.sleep(60)
        if fault == "closes-output" and wide:
            os.close(1)
            time.sleep(60)
        if fault == "lies" and request["op"] not in {"hello", "echo", "field.add"}:
            answer = {"id": request["id"], "result": {}}
        if fault == "nth-crash" and calls == 4:
            os._exit(3)
        if fault == "slow":
            time.sleep(0.02)
        if fault == "deep" and wide:
            send('{"id": ' + "[" * 100_000 + "]" * 100_000 + "}")
            continue
        if fault == "binary" and wide:
            sys.stdout.buffer.write(b"\xff\xfe\x00\n")
            sys.stdout.flush()
            continue
        if fault == "echo" and adding:
            answer = request
        if fault == "split-line":
            split(json.dumps(answer))
            continue
        if fault == "answers-ahead" and wide:
            send(json.dumps({"id": request["id"] + 1, "unsupported": True}))
        if fault == "answers-twice" and wide:
            send(json.dumps(answer))
        send(json.dumps(answer)[: -5 if fault == "truncated" and wide else None])
    if fault == "hang-at-exit":
        time.sleep(60)


if __name__ == "__main__":
    main(sys.argv[1])
