"""The implementation in JavaScript, running, and the encodings of what it is asked."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from secagg_spec.conformance import targets

NODE = shutil.which("node")
ADAPTER = Path(targets.__file__).parent / "node" / "adapter.js"
Answer = Mapping[str, Any]


class Node:
    """The adapter, running."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def ask(self, op: str, params: Answer, rand: Answer | None = None) -> Answer:
        """Return an answer, whatever it is."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"id": 1, "op": op, "params": params, "rand": rand or {}}) + "\n")
        self.process.stdin.flush()
        answer: Answer = json.loads(self.process.stdout.readline())
        assert "error" not in answer, answer
        return answer

    def result(self, op: str, params: Answer, rand: Answer | None = None) -> Answer:
        """Return the result of a request that must work."""
        answer = self.ask(op, params, rand)
        assert "result" in answer, answer
        result: Answer = answer["result"]
        return result

    def code(self, op: str, params: Answer, rand: Answer | None = None) -> str:
        """Return the code of a request that must be rejected."""
        answer = self.ask(op, params, rand)
        assert "reject" in answer, answer
        return str(answer["reject"]["code"])

    def decode(self, kind: int, message: str) -> dict[str, Any]:
        """Return the fields of a message, and its header."""
        found = self.result("message.decode", {"type": kind, "bytes": message})
        return {**found, **found["fields"]}

    def altered(self, kind: int, message: str, **changes: Any) -> str:
        """Return a message with other fields, or with another header."""
        found = self.result("message.decode", {"type": kind, "bytes": message})
        fields = {**found["fields"], **{name: changes[name] for name in changes if name in found["fields"]}}
        header = {name: changes.get(name, found[name]) for name in ("session", "round", "sender", "receiver")}
        encoded: str = self.result("message.encode", {"type": kind, **header, "fields": fields})["bytes"]
        return encoded


@contextmanager
def running(*arguments: str) -> Iterator[Node]:
    """Run the adapter meanwhile, with these arguments."""
    assert NODE is not None
    command = [NODE, str(ADAPTER), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Node(process)
        assert process.stdin is not None
        process.stdin.close()


def vector(entries: Sequence[int]) -> str:
    return b"".join(struct.pack("<I", entry) for entry in entries).hex()


def entries_of(text: str) -> list[int]:
    return [entry for (entry,) in struct.iter_unpack("<I", bytes.fromhex(text))]


def reals(numbers: Sequence[float]) -> str:
    return struct.pack(f"<{len(numbers)}d", *numbers).hex()


def reals_of(text: str) -> list[float]:
    return [number for (number,) in struct.iter_unpack("<d", bytes.fromhex(text))]
