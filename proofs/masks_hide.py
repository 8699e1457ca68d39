"""A mask hides one upload perfectly, and only one.

Statement. (a) A masked update y = x + z with a uniform mask z says nothing about x.
(b) Uploads masked by masks that are named by (user, round of download), as in the paper, say nothing about the updates
exactly when no two uploads have one name. A user that downloads the same global model twice, as a fast user does while
the buffer fills, would use one mask twice, and the difference of its two updates is in clear.

Idea. The function that masks is run on basis vectors; equal names are the same unknown. The rank criterion of
proofs/rank_criterion.py then says what is learned. For q = 2 and 3 all updates and masks are counted besides.
"""

from __future__ import annotations

from collections import Counter
from itertools import product

from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.ledger.proofs import Finding, Report, Tally
from secagg_spec.privacy.probe import probe
from secagg_spec.privacy.verdict import Verdict
from secagg_spec.privacy.views import Space, View
from secagg_spec.protocols.lightsecagg.round import mask_update

CLAIMS = {
    "BAS-EQ10": "matrices",
    "BAS-MASK1": "matrices",
}
Upload = tuple[int, int]
"""The user, and the round of its download."""


def learned(q: int, uploads: tuple[Upload, ...]) -> Verdict:
    """Return what masked uploads say, when masks are named by user and round of download; one element each."""
    field = PrimeField(q)
    masking = probe(field, lambda v: mask_update(field, v[:1], v[1:]), 2, name="mask_update")
    space = Space(field)
    view = View(space, ())
    for number, (user, downloaded) in enumerate(uploads):
        update = space.secret(f"upload {number} of user", user, [0])
        mask = space.drawn(f"mask of round {downloaded}", user, 1)
        view.see(space.apply(masking, update, mask))
    return view.decide()


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) for one upload, (b) for up to three uploads of two users in two rounds."""
    single, several = Tally(), Tally()
    for q in (2, 3, 5, 7, 2**32 - 5):
        single.add({"q": q}, learned(q, ((0, 0),)).private)
        for count in (2, 3):
            for uploads in product(((0, 0), (0, 1), (1, 0), (1, 1)), repeat=count):
                verdict = learned(q, uploads)
                case = {"q": q, "uploads (user, round)": [list(upload) for upload in uploads]}
                case |= {"learned": list(verdict.functionals)}
                several.add(case, verdict.private, condition=len(set(uploads)) == count)
    hidden = [says_nothing(q, ((0, 0),)) for q in (2, 3)]
    report.agree("BAS-EQ10", "enumeration", all(hidden), "each upload occurs equally often whatever the update is")
    lists = [uploads for count in (2, 3) for uploads in product(((0, 0), (0, 1), (1, 0), (1, 1)), repeat=count)]
    counted = all(says_nothing(2, uploads) == (len(set(uploads)) == len(uploads)) for uploads in lists)
    report.agree("BAS-MASK1", "enumeration", counted, "uploads occur equally often exactly when no two masks are one")
    report.check(several.exact, "nothing is learned exactly when no two uploads share a mask")
    report.say(f"one upload: nothing is learned, for {single.held} of {single.cases} fields")
    report.say(f"several uploads: nothing is learned in the {several.held} of {several.cases} without a second use")
    return {
        "BAS-EQ10": Finding(single.verdict, "the view has rank 0 beyond its mask", single.against),
        "BAS-MASK1": Finding(several.verdict, "a second upload after one download reuses the mask", several.against),
    }


def says_nothing(q: int, uploads: tuple[Upload, ...]) -> bool:
    """Return whether each list of uploads occurs equally often for all updates, counted over all masks."""
    names = sorted(set(uploads))
    seen = []
    for updates in product(range(q), repeat=len(uploads)):
        drawn = [dict(zip(names, masks, strict=True)) for masks in product(range(q), repeat=len(names))]
        sums = ([x + masks[name] for x, name in zip(updates, uploads, strict=True)] for masks in drawn)
        seen.append(Counter(tuple(divmod(y, q)[1] for y in row) for row in sums))
    return all(counted == seen[0] for counted in seen)
