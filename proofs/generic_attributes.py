"""In the generic bilinear group model a box of BASA opens with a key of its position, and with no other keys.

Statement. The attribute encryption of Bethencourt, Sahai and Waters, for conditions of one attribute, as in BASA: the
one of the position. Somebody has the public key, keys of some positions, several of each, and boxes to all positions.
(a) What hides the seed in a box, e(g,g)^(alpha s), is a product of powers of pairings of what is at hand exactly when
there is a key of the position of the box. So a key of an attribute that is none of these, such as that of another
buffer, opens nothing.
(b) That also holds for what the text publishes in place of e(g,g)^alpha, the element w = g^(alpha beta), and with
g^(1/beta), which BSW07 has for delegation.
(c) If all positions had one attribute, each key would open each box.
In this model, whose attacker calculates with elements that it cannot look into, it gets an element that is no such
product with a probability of about q^2/r, for q operations in groups of order r: it is what BSW07 prove. It says
nothing of attackers that use how elements of a curve are written.

Idea. Exponents are polynomials in alpha, beta, 1/beta, the secrets, the blindings and the logarithms of the hashes; a
pairing multiplies two of them, all pairs are allowed, and the question is whether alpha s is in the span of the
products. For all numbers of keys and boxes: the term alpha s is in one product only, of (alpha + rho)/beta, in a key,
with beta s, in the box. It has rho s besides, which is in (rho + t rho_j) s only, with the hash t of the key's
attribute; and t rho_j s goes away only against rho_j, in the key, times t' s, in the box, where t' = t exactly when
both are for one attribute. Ranks over the rationals decide it for three positions, every set of keys, up to two for
each; FLINT finds the same ranks. The encryption that runs opens the same boxes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, combinations, combinations_with_replacement, product
from typing import Any

from secagg_spec.crypto import attributes
from secagg_spec.crypto.attributes import Leaf
from secagg_spec.crypto.entropy import SeededSource, draw_scalars
from secagg_spec.errors import DecryptionFailed
from secagg_spec.ledger.proofs import Finding, Report, Tally, package

CLAIMS = {
    "BASA-ABEG": "symbolic",
}
POSITIONS = (0, 1, 2)
Monomial = tuple[str, ...]
Polynomial = dict[Monomial, int]
"""A sum of products of names; `beta^-1` is a name, which goes away against `beta`."""


def poly(*monomials: str) -> Polynomial:
    """Return a sum of products, each written with blanks between its names."""
    return {tuple(sorted(one.split())): 1 for one in monomials}


def times(a: Polynomial, b: Polynomial) -> Polynomial:
    """Return a product."""
    found: Polynomial = {}
    for (left, x), (right, y) in product(a.items(), b.items()):
        names = [*left, *right]
        for _ in range(min(names.count("beta"), names.count("beta^-1"))):
            names.remove("beta")
            names.remove("beta^-1")
        key = tuple(sorted(names))
        found[key] = found.get(key, 0) + x * y
    return found


def public(texts: bool) -> list[Polynomial]:
    """Return g, h, f and hashes of the attributes; and w where the text's public key is meant."""
    own = [poly(""), poly("beta"), poly("beta^-1"), *(poly(f"t{j}") for j in POSITIONS)]
    return [*own, poly("alpha beta")] if texts else own


def key(holder: str, t: str) -> list[Polynomial]:
    """Return a key for one attribute, whose hash has the logarithm t."""
    rho, own = f"rho{holder}", f"r{holder}"
    return [poly("alpha beta^-1", f"{rho} beta^-1"), poly(rho, f"{t} {own}"), poly(own)]


def box(s: str, t: str) -> list[Polynomial]:
    """Return a box for one attribute, without what is sealed in it."""
    return [poly(f"beta {s}"), poly(s), poly(f"{t} {s}")]


def rows(polynomials: Iterable[Polynomial]) -> list[list[int]]:
    """Return coefficients, a column for each monomial."""
    found = list(polynomials)
    names = sorted(set(chain.from_iterable(found)))
    return [[one.get(name, 0) for name in names] for one in found]


def spanned(goals: Sequence[Polynomial], elements: Sequence[Polynomial]) -> tuple[list[bool], list[bool]]:
    """Return whether goals are combinations of products of two elements, or of alpha: by sympy, and by FLINT."""
    sympy, flint = package("sympy"), package("flint")
    pairs = [times(a, b) for a, b in combinations_with_replacement(elements, 2)]
    matrix = rows([*pairs, poly("alpha"), *goals])
    base, wanted = matrix[: -len(goals)], matrix[-len(goals) :]

    def by_sympy(part: list[list[int]]) -> Any:
        dense = sympy.polys.matrices.DomainMatrix(part, (len(part), len(part[0])), sympy.ZZ)
        return dense.to_sparse().to_field().rank()

    def by_flint(part: list[list[int]]) -> Any:
        return flint.fmpz_mat(part).rank()

    first, second = (
        [rank([*base, row]) == before for row in wanted]
        for rank, before in ((by_sympy, by_sympy(base)), (by_flint, by_flint(base)))
    )
    return first, second


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (c)."""
    tally, goals = Tally(), [poly(f"alpha s{at}") for at in POSITIONS]
    for held, texts in keys_held():
        elements = public(texts)
        elements += chain.from_iterable(key(f"{n}", f"t{at}") for n, at in enumerate(held))
        elements += chain.from_iterable(box(f"s{at}", f"t{at}") for at in POSITIONS)
        opens, by_flint = spanned(goals, elements)
        report.agree("BASA-ABEG", "library", opens == by_flint, f"FLINT finds the same ranks: {held}")
        for at in POSITIONS:
            tally.add({"keys": list(held), "box": at, "w is public": texts}, opens[at] == (at in held))
    one_for_all = [*public(True), *key("0", "t0"), *box("s1", "t0")]
    anyone = spanned(goals[1:2], one_for_all) == ([True], [True])
    report.check(anyone, "(c) with one attribute for all each key opens each box")
    report.say(f"a box opens exactly with a key of its position, in {tally.held} of {tally.cases} cases")
    runs = all(opened(have, sealed) == (have == sealed) for have, sealed in product(POSITIONS, repeat=2))
    report.agree("BASA-ABEG", "enumeration", runs, "the encryption that runs opens the same boxes")
    return {"BASA-ABEG": Finding(tally.verdict, "as stated", tally.against, {"boxes": tally.cases})}


def keys_held() -> list[tuple[tuple[int, ...], bool]]:
    """Return every set of positions with a key, with and without w, and, with w, every one with two keys of each."""
    sets = [users for size in range(len(POSITIONS) + 1) for users in combinations(POSITIONS, size)]
    return [*product(sets, (False, True)), *((users + users, True) for users in sets if users)]


def opened(have: int, sealed: int) -> bool:
    """Return whether the encryption of the text opens a box to one position with a key of another, or the same."""
    alpha, beta, secret, *blindings = draw_scalars(SeededSource(b"generic attributes", f"{have} {sealed}"), 5)
    known, master = attributes.setup(alpha=alpha, beta=beta)
    name, session, seed = str(have).encode(), bytes(16), b"a seed"
    held = attributes.issue(master, [name], key_blinding=blindings[0], attribute_blindings={name: blindings[1]})
    tree = Leaf(str(sealed).encode())
    one = attributes.encrypt(known, tree, seed, session=session, associated=b"", secret=secret, coefficients=[])
    try:
        return attributes.decrypt(known, held, one, session=session, associated=b"") == seed
    except DecryptionFailed:
        return False
