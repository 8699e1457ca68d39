"""BASA: the weighted sum over a buffer that users fill one after another; later users remove the masks of earlier ones.

========================  ==========================================================
papers                    here
========================  ==========================================================
server, AA, user u        the server, the authority, the user at a position
q                         `R`: any modulus
K                         `K` updates in a full buffer, `S` spare positions
k, a_k                    a position, from 0, and its key or attribute
SK_k                      the pair key of position k
C_k, c_ik                 the boxes to position k, the one from position i
s_ik, PRG(s_ik)           a seed, and the mask made from it
x_k, alpha_k, y_k         `update`, `weight`, `masked` of the upload at position k
t_out                     the event that makes the server take its step `expire`
(none)                    the self key, the self box, the self mask
========================  ==========================================================

There is one module for each role: `basa.authority`, `basa.server` and `basa.user`. `basa.messages` has the messages and
the common knowledge of all three, `basa.cores` the parameters and the computations on vectors, and `crypto.boxes` the
boxes. Whole runs are in `basa.runs`, and the storage of a party's state in `basa.store`.

Source: BASA, section 3 and appendix A, repaired; spec/basa.md.
"""

from __future__ import annotations

from dataclasses import replace

from secagg_spec.arithmetic.guard import guard
from secagg_spec.crypto.boxes import KeyRing, PositionKeys
from secagg_spec.protocols.basa import authority, server, user
from secagg_spec.protocols.steps import Table


def table_of(ring: KeyRing) -> Table:
    """Return the phases; the way of making keys decides what each phase samples (section 3, section 10)."""
    return (
        replace(authority.authority_open, randomness=ring.opening),
        *(server.server_open, user.user_request, server.server_offer, authority.authority_assign, user.user_fetch),
        replace(authority.authority_issue, randomness=ring.issuing),
        replace(user.user_upload, randomness=user.sampled_by_users(ring.encryption)),
        *(server.server_take, server.server_expire, authority.authority_settle, server.server_settle),
        server.server_close,
        replace(authority.authority_close, randomness=ring.issuing),
        *(server.server_recover, server.server_abandon, authority.authority_abandon),
    )


TABLE = table_of(PositionKeys())
"""The phases with one key pair for each position."""


guard(__name__)
