"""Writes what the vectors of spec/vectors say as statements on the definitions, for the prover to decide by its twins.

examples.py FOLDER     write the files, and print how many examples there are of each operation

A vector is taken when it has a result and its operation is one of `FILES`; the function of the operation says what else
it asks for. Certificates (codewords, coefficients) are computed here; the prover checks them, so none need be believed.
"""

from __future__ import annotations

import json
import re
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from secagg_spec.conformance.targets.reference.basa import bound_epoch, read_parameters
from secagg_spec.crypto.boxes import mask_key
from secagg_spec.crypto.prg import expand

VECTORS = Path(__file__).parents[2] / "spec" / "vectors"
FIELD = 2**521 - 1
"""The field of Shamir's shares, as the prover writes it."""
NAMES = {FIELD: "(mersenne 521)"}
COMPUTE = "vm_cast_no_check (erefl true)."
HEAD = """(* Written by proofs/formal/examples.py from spec/vectors. *)
From Coq Require Import ZArith.
From mathcomp Require Import all_ssreflect all_algebra.
From secagg Require Import {files}.
Local Open Scope Z_scope.
"""
Vector = dict[str, Any]
Rows = list[list[int]]


def numbers(text: str, size: int = 4) -> list[int]:
    """Return the unsigned little-endian numbers of `size` bytes that a hexadecimal text holds."""
    data = bytes.fromhex(text)
    return [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]


def chop(elements: list[int], size: int) -> Rows:
    """Cut a list into rows."""
    return [elements[at : at + size] for at in range(0, len(elements), size)]


def term(value: Any) -> str:
    """Return a number of Z, or a list of them, as the prover writes it."""
    if isinstance(value, int):
        return NAMES.get(value, f"({value})" if value < 0 else str(value))
    return f"[:: {'; '.join(map(term, value))}]" if value else "[::]"


def nat(value: Any) -> str:
    """Return a natural number, or a list of them, as the prover writes it."""
    return f"{term(value)}%N"


def codeword(users: Sequence[int], shares: Rows, count: int, q: int) -> Rows:
    """Return the `count` rows of the matrix that has these shares at the first `count` users, modulo a prime q."""
    points = [user + 1 for user in users[:count]]
    whole = [1]  # the product of all x - point, lowest power first
    for point in points:
        whole = [(low - point * high) % q for low, high in zip([0, *whole], [*whole, 0], strict=True)]
    rows = [[0] * len(shares[0]) for _ in range(count)]
    for point, share in zip(points, shares, strict=False):
        part, rest = [], 0
        for coefficient in reversed(whole[1:]):
            rest = (coefficient + point * rest) % q
            part.append(rest)
        part.reverse()
        at_point = sum(coefficient * pow(point, power, q) for power, coefficient in enumerate(part))
        scale = pow(at_point, -1, q)
        for row, coefficient in zip(rows, part, strict=True):
            for column, element in enumerate(share):
                row[column] = (row[column] + coefficient * scale * element) % q
    return rows


class Examples:
    """Collects examples for one file, and the primes that they are about."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.lines: list[str] = []
        self.primes: set[int] = set()

    def add(self, vector: Vector, statement: str, proof: str) -> None:
        """Add what a vector says, and how it is proved but for the computation."""
        name = vector["id"].replace("-", "_")
        self.names.append(name)
        self.lines.append(f"Example {name} : {statement}.\nProof. {proof}; {COMPUTE} Qed.\n")

    def prime(self, q: int) -> str:
        """Return the proof that q is prime."""
        self.primes.add(q)
        return f"prime_{'521' if q == FIELD else q}"

    def field(self, q: int, users: int) -> str:
        """Return what is said first of a field: q, how many users, that q is prime and above their number."""
        return f"{term(q)} {nat(users)} {self.prime(q)} (@below {nat(users)} {term(q)} isT)"

    def text(self, files: str) -> str:
        """Return the file, which requires `files`; the tuple at its end rests on all that the examples rest on."""
        proofs = [
            f"Lemma {self.prime(q)} : prime (Z.to_nat {term(q)}).\n"
            f"Proof. apply: {'lucas_lehmerP' if q == FIELD else 'trialP'}; {COMPUTE} Qed.\n"
            for q in sorted(self.primes)
        ]
        whole = f"Definition examples := ({', '.join(self.names)}).\n"
        return "\n".join([HEAD.format(files=files), *proofs, *self.lines, whole])


def code(p: Vector, L: int) -> str:
    """Return q, N, d, K, T and L."""
    return f"{term(int(p['q']))} {nat(p['N'])} {nat(p['d'])} {nat(p['U'] - p['T'])} {nat(p['T'])} {nat(L)}"


def mds_encode(out: Examples, vector: Vector) -> None:
    """Add the shares of all users."""
    p, shares = vector["params"], [numbers(share) for share in vector["result"]["shares"]]
    mask, noise = numbers(p["mask"]), chop(numbers(vector["rand"]["noise"]), len(shares[0]))
    given = f"{code(p | {'d': len(mask)}, len(shares[0]))} {term(mask)} {term(noise)} {term(shares)}"
    out.add(vector, f"encodes {given}", f"apply: (encodesP {out.prime(int(p['q']))})")


def mds_decode(out: Examples, vector: Vector) -> None:
    """Add that the shares are those of one codeword, and of the mask."""
    p, shares = vector["params"], [numbers(share) for share in vector["params"]["shares"]]
    word = codeword(p["users"], shares, p["U"], int(p["q"]))
    given = f"{code(p, len(shares[0]))} {nat(p['users'])} {term(shares)} {term(numbers(vector['result']['mask']))}"
    out.add(vector, f"decodes {given}", f"apply: (@decodesP {out.field(int(p['q']), p['N'])} {term(word)})")


def shamir_share(out: Examples, vector: Vector) -> None:
    """Add the shares of the holders."""
    p, coefficients = vector["params"], numbers(vector["rand"]["coefficients"], 66)
    shares = [number for share in vector["result"]["shares"] for number in numbers(share, 66)]
    (secret,) = numbers(p["secret"], 32)
    given = f"{nat(p['n'])} {nat(p['t'] - 1)} {term(secret)} {term(coefficients)} {term(shares)}"
    out.add(vector, f"shares {term(FIELD)} {given}", f"apply: (sharesP {out.prime(FIELD)})")


def shamir_reconstruct(out: Examples, vector: Vector) -> None:
    """Add that the shares are of one polynomial, and of the secret; for users below 1,024, as they are unary."""
    if max(vector["params"]["users"]) >= 1024:
        return
    p, shares = vector["params"], [number for share in vector["params"]["shares"] for number in numbers(share, 66)]
    word = [row[0] for row in codeword(p["users"], [[share] for share in shares], p["t"], FIELD)]
    (secret,) = numbers(vector["result"]["secret"], 32)
    N = max(p["users"]) + 1
    given = f"{nat(N)} {nat(p['t'] - 1)} {nat(p['users'])} {term(shares)} {term(secret)}"
    proof = f"apply: (@reconstructsP {out.field(FIELD, N)} {term(word[1:])})"
    out.add(vector, f"reconstructs {term(FIELD)} {given}", proof)


def masked(out: Examples, vector: Vector) -> None:
    """Add the upload of a user."""
    p = vector["params"]
    lists = [numbers(p["update"]), numbers(p["mask"]), numbers(vector["result"]["masked"])]
    given = f"{term(int(p['q']))} N {nat(len(lists[0]))} T L {' '.join(map(term, lists))}"
    out.add(
        vector, f"forall N T L, masks {given}", f"move=> N T L; apply: masksP; first exact: {out.prime(int(p['q']))}"
    )


def answer(out: Examples, vector: Vector) -> None:
    """Add the answer of a user, from the shares that it holds of those in the buffer, or of the survivors."""
    p = vector["params"]
    users, q = p.get("users") or p["surviving"], int(p["q"])
    weights = numbers(p["weights"]) if "weights" in p else [1] * len(users)
    stamps = numbers(p["stamps"], len(p["stamps"]) // 2 // len(users)) if "stamps" in p else []
    held = {tuple(map(str, entry[:-1])): numbers(entry[-1]) for entry in p["held"]}
    keys = zip(map(str, users), map(str, stamps), strict=True) if stamps else zip(map(str, users))
    shares, answered = [held[key] for key in keys], numbers(vector["result"]["share"])
    lists = f"{term(weights)} {nat(users)} {term(shares)} {term(answered)}"
    given = f"{term(q)} {nat(p['N'])} d K T {nat(len(answered))} {lists}"
    out.add(vector, f"forall d K T, answers {given}", f"move=> d K T; apply: answersP; first exact: {out.prime(q)}")


def recover(out: Examples, vector: Vector) -> None:
    """Add the weighted sum of the inputs, from uploads and answers; a buffer's uploads are of its users 0, 1, ..."""
    p, result, q = vector["params"], vector["result"], int(vector["params"]["q"])
    uploads, shares = [numbers(each) for each in p["masked"]], [numbers(share) for share in p["shares"]]
    weights = numbers(p["weights"]) if "weights" in p else [1] * len(uploads)
    given = [
        term(weights),
        nat(p.get("surviving", list(range(len(uploads))))),
        term(uploads),
        nat(p["users"]),
        term(shares),
    ]
    total = term(numbers(result["sum"] if "sum" in result else result["aggregate"]))
    word = term(codeword(p["users"], shares, p["U"], q))
    proof = f"apply: (@recoversP {out.field(q, p['N'])} _ _ _ _ _ {word})"
    out.add(vector, f"recovers {code(p, len(shares[0]))} {' '.join(given)} {total}", proof)


def fractions(reals: Sequence[float | Fraction]) -> str:
    """Return real numbers as fractions."""
    parts = [real.as_integer_ratio() for real in reals]
    return f"[:: {'; '.join(f'({term(top)}, {term(bottom)})' for top, bottom in parts)}]"


def binary64(text: str) -> list[float]:
    """Return the numbers of binary64 that a hexadecimal text holds."""
    return [number for (number,) in struct.iter_unpack("<d", bytes.fromhex(text))]


def quantise(out: Examples, vector: Vector) -> None:
    """Add the residues of quantised numbers, where rounding is stochastic; the product is rounded here."""
    p, draws = vector["params"], binary64(vector["rand"].get("rounding", ""))
    ys = [number * float(p["level"]) for number in binary64(p["x"])]
    if len(ys) != len(draws) or vector["policy"]["quantizer.rounding"] != "stochastic":
        return
    given = f"{p['q']} {fractions(ys)} {fractions(draws)} {term(numbers(vector['result']['value']))}"
    out.add(vector, f"quantises {given}", "apply: quantisesP")


def carried(out: Examples, vector: Vector) -> None:
    """Add the integers that stand for numbers, where the error that HSA-08 allows changes none of them."""
    p, draws = vector["params"], binary64(vector["rand"]["rounding"])
    (low, high), top = binary64(p["range"]), int(p["levels"]) - 1
    clipped = [Fraction(min(max(number, low), high)) for number in binary64(p["x"])]
    ys = [top * (number - Fraction(low)) / (Fraction(high) - Fraction(low)) for number in clipped]
    offsets = [y - Fraction(draw) for y, draw in zip(ys, draws, strict=True)]
    if any(abs(offset - round(offset)) <= Fraction(top + 1, 2**48) for offset in offsets):
        return
    given = f"{fractions(ys)} {fractions(draws)} {term(numbers(vector['result']['value']))}"
    out.add(vector, f"levels {given}", "apply: levelsP")


def position(out: Examples, vector: Vector) -> None:
    """Add the upload of a position of BASA, with its masks and their signs; the reference makes them from the seeds."""
    p = dict(vector["params"])
    k, accepted, weight = p.pop("position"), p.pop("accepted"), p.pop("weight")
    session, number, update = p.pop("session"), p.pop("round"), numbers(p.pop("update"))
    received = [bytes.fromhex(seed) for seed in p.pop("before")]
    seeds = [bytes.fromhex(seed) for seed in re.findall(".{64}", p.pop("seeds"))]
    parameters = read_parameters(**p)
    epoch, P = bound_epoch(parameters, session, number), parameters.positions

    def mask(seed: bytes, source: int, target: int | None = None) -> list[int]:
        return [int(word) for word in expand(mask_key(epoch, seed, source, target), parameters.ring, parameters.d)]

    own = mask(seeds[k], k) if parameters.settle else []
    before = [mask(seed, source, k) for source, seed in zip(accepted, received, strict=True)]
    after = [mask(seeds[target], k, target) for target in range(k + 1, P)]
    lists = f"{term(update)} {term(own)} {term(before)} {term(after)} {term(numbers(vector['result']['masked']))}"
    given = f"{p['R']} {nat(P)} {nat(parameters.d)} {nat(k)} {nat(accepted)} {term(weight)} {lists}"
    out.add(vector, f"uploads {given}", f"apply: (uploadsP (@below 1%N {p['R']} isT))")


def plan(out: Examples, vector: Vector) -> None:
    """Add the matrix of a plan: the cyclic one, or one that has the premises of Perfect.v."""
    rows = vector["result"]["matrix"]
    if vector["params"]["matrix"] == "cyclic":
        out.add(vector, f"plans {nat(len(rows) - 2)} {term(rows)}", "apply: plansP")
    else:
        out.add(vector, f"factors {nat(len(rows))} {term(rows)}", "apply: factorsP")


_CODE = "Code Instances LightSecAgg SecAggShamir Twin TwinCode Primes"
FILES: dict[str, tuple[str, dict[str, Callable[[Examples, Vector], None]]]] = {
    "ExamplesCode": (
        _CODE,
        {
            "mds.encode": mds_encode,
            "mds.decode": mds_decode,
            "lightsecagg.mask": masked,
            "basecagg.mask": masked,
            "lightsecagg.aggregate_shares": answer,
            "basecagg.combine": answer,
            "lightsecagg.recover": recover,
            "basecagg.recover": recover,
        },
    ),
    "ExamplesMasks": ("Basa Twin TwinMasks", {"basa.mask": position}),
    "ExamplesPlan": ("Heterosag TwinPlan", {"segment.plan": plan}),
    "ExamplesQuantiser": (
        "Quantiser Twin TwinQuantiser",
        {"quantizer.quantize": quantise, "quantize.levels": carried},
    ),
    "ExamplesShamir": (_CODE, {"shamir.share": shamir_share, "shamir.reconstruct": shamir_reconstruct}),
}
"""The files to write; of each, what it requires, and its operations."""


def vectors() -> Iterator[Vector]:
    """Yield the vectors that have a result, in the order of the files."""
    for path in sorted(VECTORS.glob("*.json")):
        for vector in json.loads(path.read_text(encoding="utf-8")).get("vectors", ()):
            if "result" in vector:
                yield vector


def wrong(result: Any) -> Any:
    """Return a result of which the first number or byte is another."""
    if isinstance(result, dict):
        key = "matrix" if "matrix" in result else next(iter(result))
        return {**result, key: wrong(result[key])}
    if isinstance(result, list):
        return [wrong(result[0]), *result[1:]]
    return f"{int(result[:2], 16) ^ 1:02x}{result[2:]}" if isinstance(result, str) else result ^ 1


def write(folder: Path, spoilt: str = "") -> dict[str, int]:
    """Write the files, and return how many examples there are of each operation.

    The first example of the operation `spoilt` is given a wrong result.
    """
    counts: dict[str, int] = {}
    found = list(vectors())
    for name, (files, families) in FILES.items():
        out = Examples()
        for operation, family in families.items():
            before = len(out.names)
            for vector in found:
                if vector["operation"] == operation:
                    fault = operation == spoilt and len(out.names) == before
                    family(out, {**vector, "result": wrong(vector["result"])} if fault else vector)
            counts[operation] = len(out.names) - before
        (folder / f"{name}.v").write_text(out.text(files), encoding="utf-8")
    return counts


def operations() -> list[str]:
    """Return the operations whose vectors are taken."""
    return [operation for _, families in FILES.values() for operation in families]


def said(counts: dict[str, int]) -> str:
    """Return in words how many examples there are."""
    each = ", ".join(f"{operation} {count}" for operation, count in counts.items())
    return f"{sum(counts.values())} examples from vectors: {each}."


if __name__ == "__main__":
    print(said(write(Path(sys.argv[1]))))
