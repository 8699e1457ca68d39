"""BASA: the weighted sum over a buffer that users pass one after another, with masks that the next ones remove.

========================  ==========================================================
papers                    here
========================  ==========================================================
server, AA, user u        the server, the authority, the user at a position
q                         `R`: any modulus
K                         `K` updates in a full buffer, `S` spare positions
k, a_k                    a position, from 0, and its key or attribute
SK_k                      the pair key of position k
C_k, c_ik                 the boxes to position k, the one from position i
s_ik, PRG(s_ik)           a seed, and the mask that it gives
x_k, alpha_k, y_k         `update`, `weight`, `masked` of the upload at position k
t_out                     whatever makes the server take its step `expire`
(none)                    the self key, the self box, the self mask
========================  ==========================================================

One module for each role: `basa.authority`, `basa.server` and `basa.user`; `basa.messages` has the messages and what all
three know, `basa.cores` the parameters and what is computed on vectors, `crypto.boxes` the boxes. Whole runs are in
`basa.runs`, what a party stores is in `basa.store`.

Source: BASA, section 3 and appendix A, repaired; spec/basa.md.
"""

from __future__ import annotations

from secagg_spec.crypto.boxes import KeyRing, PositionKeys
from secagg_spec.protocols.basa.authority import (
    authority_abandon,
    authority_assign,
    authority_close,
    authority_issue,
    authority_open,
    authority_settle,
)
from secagg_spec.protocols.basa.messages import (
    Abandonment,
    Assignment,
    CloseRequest,
    EpochKeys,
    KeyRequest,
    PositionKey,
    PositionOffer,
    PositionRequest,
    PositionState,
    PositionUpload,
    Release,
    Settlement,
)
from secagg_spec.protocols.basa.server import (
    server_abandon,
    server_close,
    server_expire,
    server_offer,
    server_open,
    server_recover,
    server_settle,
    server_take,
)
from secagg_spec.protocols.basa.user import user_fetch, user_request, user_upload
from secagg_spec.protocols.steps import Role, Step, Table


def table_of(ring: KeyRing) -> Table:
    """Return the phases with what is sampled in each, which a way of making keys decides (section 3, section 10)."""
    drawn, issuing = ("seeds", ring.encryption.samples, "rounding"), ring.issuing
    return (
        Step("open", Role.AUTHORITY, authority_open, sends=(EpochKeys,), randomness=ring.opening),
        Step("open", Role.SERVER, server_open, (EpochKeys,)),
        Step("request", Role.USER, user_request, sends=(PositionRequest,)),
        Step("offer", Role.SERVER, server_offer, (PositionRequest,), (PositionOffer, Assignment)),
        Step("assign", Role.AUTHORITY, authority_assign, (Assignment,)),
        Step("fetch", Role.USER, user_fetch, (PositionOffer,), (KeyRequest,)),
        Step("issue", Role.AUTHORITY, authority_issue, (KeyRequest,), (PositionKey,), issuing),
        Step("upload", Role.USER, user_upload, (PositionKey,), (PositionUpload,), drawn),
        Step("take", Role.SERVER, server_take, (PositionUpload,), (Settlement,)),
        Step("expire", Role.SERVER, server_expire, sends=(Settlement,)),
        Step("settle", Role.AUTHORITY, authority_settle, (Settlement,), (PositionState,)),
        Step("settle", Role.SERVER, server_settle, (PositionState,)),
        Step("close", Role.SERVER, server_close, sends=(CloseRequest,)),
        Step("close", Role.AUTHORITY, authority_close, (CloseRequest,), (Release,), issuing),
        Step("recover", Role.SERVER, server_recover, (Release,)),
        Step("abandon", Role.SERVER, server_abandon, sends=(Abandonment,)),
        Step("abandon", Role.AUTHORITY, authority_abandon, (Abandonment,)),
    )


TABLE = table_of(PositionKeys())
"""The phases with one key pair for each position."""
