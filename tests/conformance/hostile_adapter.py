"""An adapter that attacks the kit itself, as its first argument says: floods, hangs, and text that a terminal obeys."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

CHUNK = b"x" * 65_536
EVIL = "\x1b[2J\x1b]0;title\x07\u202egnol\x85\r\nsecond \ud800 line"


def put(data: bytes) -> None:
    """Write to standard output at once."""
    while data:
        data = data[os.write(1, data) :]


def answer(request: dict[str, Any], **members: object) -> None:
    """Write an answer."""
    put(json.dumps({"id": request["id"], **members}).encode() + b"\n")


def hello(request: dict[str, Any], name: str = "hostile") -> None:
    """Answer hello."""
    about = {"name": name, "version": "1", "language": "python"}
    operations: dict[str, Any] = {"echo": {}, "field.add": {}, "field.subtract": {}, "field.multiply": {}}
    result = {"protocol": [1, 0], "implementation": about, "randomness": "explicit", "operations": operations}
    answer(request, result=result)


def forever(write: Callable[[bytes], object], data: bytes) -> None:
    """Write without end."""
    while True:
        write(data)


def error_output(data: bytes) -> None:
    """Write to standard error."""
    os.write(2, data)


def close_output() -> None:
    """Close standard output and keep running."""
    os.close(1)
    time.sleep(600)


def raw(text: bytes) -> Callable[[dict[str, Any]], None]:
    """Return an act that writes these bytes, with the id put in for %d."""
    return lambda request: put(text.replace(b"%d", str(request["id"]).encode()))


def grandchild(*, escaped: bool) -> Callable[[dict[str, Any]], None]:
    """Return an act that leaves a child behind that holds the pipes, and ends."""

    def act(request: dict[str, Any]) -> None:
        subprocess.Popen(["sleep", "30"], start_new_session=escaped)
        os._exit(5)

    return act


def die(request: dict[str, Any]) -> None:
    """Say why, in several lines, and end with half a line written."""
    os.write(2, b"Traceback (most recent call last):\n  File main.py\nKeyError: 'q'\n\x1b[31mgiving up\n")
    put(b'{"id": ')
    os._exit(7)


def sleep(request: dict[str, Any]) -> None:
    """Hang."""
    time.sleep(600)


ACTS: dict[str, Callable[[dict[str, Any]], None]] = {
    "flood": lambda request: forever(put, CHUNK),
    "flood-lines": lambda request: forever(put, b"x\n" * 30_000),
    "flood-stderr": lambda request: forever(error_output, CHUNK),
    "hang": sleep,
    "close-stdout": lambda request: close_output(),
    "close-stdin": lambda request: os.close(0) or time.sleep(600),  # type: ignore[func-returns-value]
    "grandchild": grandchild(escaped=False),
    "grandchild-escaped": grandchild(escaped=True),
    "die": die,
    "evil-text": lambda request: answer(request, error={"message": EVIL * 1000}),
    "evil-code": lambda request: answer(request, reject={"code": EVIL, "message": EVIL}),
    "evil-line": raw(EVIL.encode("utf-8", "surrogatepass") + b"\n"),
    "infinite": raw(b'{"id": %d, "result": {"value": 1e999}}\n'),
    "unsupported-false": raw(b'{"id": %d, "unsupported": false}\n'),
    "id-float": raw(b'{"id": %d.0, "unsupported": true}\n'),
    "extra-member": raw(b'{"id": %d, "unsupported": true, "note": 1}\n'),
    "message-number": raw(b'{"id": %d, "error": {"message": 5}}\n'),
    "nan": raw(b'{"id": %d, "result": {"value": NaN}}\n'),
    "garbage": raw(b'{"id": %d, "unsupported": true} {}\n'),
    "not-utf-8": raw(b'{"id": %d, "error": {"message": "\xff"}}\n'),
    "deep": raw(b'{"id": %d, "result": {"value": ' + b"[" * 300 + b"]" * 300 + b"}}\n"),
    "twice": raw(b'{"id": %d, "unsupported": true}\n{"id": %d, "unsupported": true}\n'),
}


def main(fault: str, pid_file: str = "") -> None:
    """Answer hello as the fault wants it, and every other request by its act."""
    if pid_file:
        with open(pid_file, "w") as file:
            file.write(str(os.getpid()))
    if fault == "ignore-sigterm":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if fault.startswith("start-"):
        ACTS[fault.removeprefix("start-")]({"id": 1})
    for line in sys.stdin:
        request = json.loads(line)
        if fault.startswith("hello-"):
            ACTS[fault.removeprefix("hello-")](request)
        elif request["op"] == "hello":
            hello(request, EVIL if fault.startswith("evil") else "hostile")
        elif fault == "blind":
            forever(put, b'{"id": 2, "unsupported": true}\n')
        else:
            ACTS["hang" if fault == "ignore-sigterm" else fault](request)


if __name__ == "__main__":
    main(*sys.argv[1:])
