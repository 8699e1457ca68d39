"""Nothing but the errors of `secagg_spec.errors` comes out of a public function, whatever goes in.

`CALLS` holds one valid call of every public function. The tests replace arguments by things that no correct caller
gives. `CORES` names what is not a boundary: it is called with arguments that a boundary has checked.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, reduce
from itertools import product
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec import errors
from secagg_spec.arithmetic import (
    averages,
    limbs,
    mds,
    modular,
    participation_classes,
    quantizer,
    rationals,
    sampling,
    scalars,
    shamir,
    staleness,
)
from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.arithmetic.modular import PrimeField, Ring
from secagg_spec.crypto import (
    access_tree,
    attribute_boxes,
    attribute_keys,
    attributes,
    boxes,
    channels,
    entropy,
    keys,
    masks,
    pairing,
    prg,
    sealing,
    signatures,
)
from secagg_spec.crypto.boxes import Address, Epoch
from secagg_spec.crypto.channels import PlainChannel
from secagg_spec.crypto.entropy import SeededSource, SystemSource
from secagg_spec.errors import (
    DuplicateUser,
    LengthMismatch,
    NonCanonical,
    OutOfRange,
    ParameterError,
    ProtocolError,
    TooFewSurvivors,
    UnknownUser,
)
from secagg_spec.events import Event, Schedule
from secagg_spec.protocols import agreement, begun, buffers, codec
from secagg_spec.protocols import steps as shape
from secagg_spec.protocols.basa import buffers as basa_buffers
from secagg_spec.protocols.basa import cores as basa_cores
from secagg_spec.protocols.basa import messages
from secagg_spec.protocols.basecagg import active as basecagg_active
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.basecagg import runs as basecagg_runs
from secagg_spec.protocols.basecagg import store as basecagg_store
from secagg_spec.protocols.fedbuff import round as fedbuff
from secagg_spec.protocols.heterosag import costs as heterosag_costs
from secagg_spec.protocols.heterosag import plan as heterosag_plan
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.lightsecagg.round import (
    PRESETS,
    AggregatedShare,
    MaskedUpdate,
    MaskShare,
    Parameters,
    SurvivingSet,
    run_round,
)
from secagg_spec.protocols.multi_round import round as multi_round
from secagg_spec.protocols.secagg import active as secagg_active
from secagg_spec.protocols.secagg import graph
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import SERVER, Network
from secagg_spec.selection import batches
from secagg_spec.simulate.visits import visits
from tests.harden import public
from tests.harden.enlarge import HUGE, enlarged
from tests.protocols import (
    basa_calls,
    buffered,
    cost_calls,
    heterosag_calls,
    metric_calls,
    participation_calls,
    selection_calls,
    test_secagg,
    test_secagg_active,
)
from tests.quick import one_in
from tests.strategies import fewer, fixed_round, snapshot, vector

TINY = PRESETS["tiny"]
ROUND = fixed_round(TINY)
FIELD, RING = PrimeField(7), Ring(2**32)
SESSION, OTHER = bytes(16), bytes(15) + b"\1"
KEY = bytes([7]) * 32
LATE = staleness.Staleness.polynomial(1)
BUFFERED = fedbuff.PRESETS["tiny"]
WAITING = fedbuff.receive(fedbuff.start(BUFFERED, np.zeros(3)), 0, 0, np.ones(3))
FULL = fedbuff.receive(WAITING, 1, 0, np.ones(3))
STORED = ("N", "d", "K", "tau_max", "eta_g", "c_g", "c_l", "kind", "numerator", "denominator", "start")
HEADER = ("session", "round", "sender", "receiver")


# ----------------------------------------------------------------------------------------------------- valid calls


@dataclass(frozen=True)
class Call:
    """A valid call.

    `fixed` arguments are objects of the library, which tests/harden/public.py replaces; `also` are further names that a
    refusal may use; `sizes` are the arguments that say how much is made, of which large ones are taken at their word.
    """

    function: Callable[..., Any]
    arguments: Mapping[str, Any]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()

    def __call__(self, **changed: Any) -> Any:
        return self.function(**{**self.arguments, **self.fixed, **changed})

    def names(self) -> set[str]:
        """What a refusal may call its parameter."""
        return {*self.arguments, *self.fixed, *self.also}

    def takes_long(self, argument: str, value: Any) -> bool:
        """Whether a value is a size that is allowed and too large for a test."""
        return argument in self.sizes and isinstance(value, int) and value > 2**20


def sealed() -> Mapping[int, sealing.SealedChannel]:
    """The sealed channels of two users."""
    context = lightsecagg.sealing_context(TINY, SESSION, 0)
    return sealing.sealed_links(context, {0: KEY, 1: bytes(32)}).channels


def stamped() -> Mapping[int, sealing.SealedStampedChannel]:
    """The stamped channels of two users."""
    context = basecagg.sealing_context(basecagg.PRESETS["tiny"], SESSION)
    return basecagg_runs.sealed_channels(context, {0: KEY, 1: bytes(32)})


def fresh_play() -> basecagg_runs.Play:
    """A network of BASecAgg, and what its turns take from."""
    supplies = basecagg_runs.supplies(ASYNC, [vector([1, 1, 1])], SUPPLIES)
    return basecagg_runs.Play(
        basecagg_runs.open_session(ASYNC, session=bytes(16), round=0), supplies, basecagg.user_trained
    )


def stage(steps: int) -> Network:
    """A network at tiny on which every party has taken the first `steps` rows of the table."""
    states: dict[int, Any] = {SERVER: lightsecagg.server_start(TINY, SESSION, 0)}
    for user in range(TINY.N):
        states[user] = lightsecagg.user_start(TINY, SESSION, 0, user, ROUND.updates[user], PlainChannel())
    network = Network(lightsecagg.TABLE, states)
    for step in lightsecagg.TABLE[:steps]:
        for party in (SERVER,) if step.role is shape.Role.SERVER else range(TINY.N):
            network.take(step, party, ROUND.randomness[party] if step.randomness else {})
    return network


def step_call(row: int) -> Call:
    """A valid call of the step in one row of the table, at tiny."""
    step, network = lightsecagg.TABLE[row], stage(row)
    party = SERVER if step.role is shape.Role.SERVER else 0
    randomness = ROUND.randomness[0] if step.randomness else {}
    arguments = {"inbox": network.mail(step, party), "randomness": randomness}
    also = ("mask", "noise", "surviving", *HEADER, *(kind.__name__ for kind in step.receives))
    return Call(lambda state, inbox, randomness: step.take(state, inbox, randomness=randomness), arguments,
                {"state": network.states[party]}, also)  # fmt: skip


def active_stage(steps: int) -> Network:
    """A network of the active profile at tiny on which every party has taken the first `steps` rows of the table."""
    network = lightsecagg_active.open_round(ACTIVE, ROUND.updates, keys=PRIVATE, session=bytes(16), round=0)
    for step in lightsecagg_active.TABLE[:steps]:
        for party in (SERVER,) if step.role is shape.Role.SERVER else range(TINY.N):
            network.take(step, party, ROUND.randomness[party] if step.randomness else {})
    return network


def active_call(row: int) -> Call:
    """A valid call of the step in one row of the active profile's table; a channel seals once, so none seals here."""
    step, network = lightsecagg_active.TABLE[row], active_stage(row)
    party = SERVER if step.role is shape.Role.SERVER else 0
    state = network.states[party]
    if row == 0:
        state = replace(state, base=replace(state.base, channel=PlainChannel()))
    arguments = {"inbox": network.mail(step, party), "randomness": ROUND.randomness[0] if step.randomness else {}}
    also = ("mask", "noise", "surviving", "signers", "signatures", "signature", "payload", *HEADER)
    return Call(lambda state, inbox, randomness: step.take(state, inbox, randomness=randomness), arguments,
                {"state": state}, (*also, *(kind.__name__ for kind in step.receives)))  # fmt: skip


def pairwise_call(protocol: Any, case: Any, network: Network, row: int) -> Call:
    """A valid call of the step in one row of SecAgg's table, in either profile."""
    step = protocol.TABLE[row]
    party = SERVER if step.role is shape.Role.SERVER else 0
    sampled = {name: case.randomness[party][name] for name in step.randomness}
    fields = {name for kind in step.receives for name in codec.field_codecs(kind)}
    also = (*HEADER, *fields, *SAMPLED, "private", "t", "secret", "users", *(kind.__name__ for kind in step.receives))
    return Call(lambda state, inbox, randomness: step.take(state, inbox, randomness=randomness),
                {"inbox": network.mail(step, party), "randomness": sampled}, {"state": network.states[party]},
                also)  # fmt: skip


def message(kind: type[codec.Message], name: str, value: Any) -> Call:
    """Writing a message of one kind."""
    header = dict(zip(HEADER, (SESSION, 0, 0, 1), strict=True))
    return Call(lambda **fields: codec.encode(kind(**fields)), {**header, name: value})


def method(owner: Any, name: str, *also: str, sizes: tuple[str, ...] = (), **arguments: Any) -> Call:
    """A valid call of a method."""
    return Call(getattr(owner, name), arguments, also=also, sizes=sizes)


def buffered_scene(parameters: basecagg.Parameters, rows: int) -> buffered.Scene:
    """A session of BASecAgg in which something waits for one row of the table, at tiny."""
    scene = buffered.Scene(parameters)
    for phase, party in (("request", 0), ("request", SERVER), ("share", 0), ("share", SERVER))[:rows]:
        scene.take(phase, party)
    if rows < 5:
        return scene
    scene.start(1, 2, 3)
    for user in (0, 1, 2, 3):
        scene.train(user)
    for user in (0, 1, 2, 3) if rows > 6 else (1, 2, 3):
        scene.take("upload", user)
    scene.network.waiting[SERVER] = scene.network.waiting[SERVER][: parameters.K]
    later = (("upload", SERVER), ("close", SERVER), ("confirm", 0), ("confirm", SERVER), ("recover", 0))
    known = [(phase, party) for phase, party in later if (phase, party == SERVER) in _rows(scene)]
    for phase, party in known[: rows - 7] if rows > 7 else ():
        for user in (party,) if party == SERVER else range(5):
            scene.take(phase, user)
    return scene


def _rows(scene: buffered.Scene) -> set[tuple[str, bool]]:
    return {(step.phase, step.role is shape.Role.SERVER) for step in scene.network.table}


def buffered_call(parameters: basecagg.Parameters, row: int) -> Call:
    """A valid call of the step in one row of BASecAgg's table, in either profile; channels seal once, so none seals."""
    scene = buffered_scene(parameters, row)
    step = scene.network.table[row]
    party = SERVER if step.role is shape.Role.SERVER else int(step.phase == "hold")
    state = scene.network.states[party]
    if scene.active and step.phase == "share" and party != SERVER:
        state = replace(state, base=replace(state.base, channel=channels.PlainStampedChannel()))
    fields = {name for kind in step.receives for name in codec.field_codecs(kind)}
    sampled = ("mask", "noise", "rounding", "sum", "weights", "rows")
    also = (*HEADER, *fields, *sampled, *(kind.__name__ for kind in step.receives))
    arguments = {"inbox": scene.mail(step.phase, party), "randomness": scene.sampled(step)}
    return Call(lambda state, inbox, randomness: step.take(state, inbox, randomness=randomness), arguments,
                {"state": state}, also)  # fmt: skip


def stored_call(function: Callable[..., Any], state: Any, **fixed: Any) -> Call:
    """A valid call of what restores a server."""
    return Call(lambda data: function(data, **fixed), {"data": state}, also=STORED_SERVER)


PAIR: dict[str, Any] = {"a": vector([1, 2]), "b": vector([3, 4])}
CODE = TINY.code
SHARES = CODE.encode(vector([1, 2, 3]), vector([[4, 5]]))
HELD = {user: SHARES[user] for user in range(5)}
GREETINGS = [MaskedUpdate(SESSION, 0, 0, 9, vector([1])), MaskedUpdate(SESSION, 0, 1, 9, vector([1]))]
START = {"session": SESSION, "round": 0}
PARTIES = {"sender": 0, "receiver": 1}
ACTIVE = lightsecagg_active.PRESETS["tiny"]
PRIVATE = {u: lightsecagg_active.PrivateKeys(bytes([u + 1]) * 32, bytes([u + 9]) * 32) for u in range(5)}
PUBLIC = lightsecagg_active.roster_of(ACTIVE, PRIVATE)
BALLOT = lightsecagg_active.server_start(ACTIVE, SESSION, 0, PUBLIC).ballot
AGREED = agreement.Proposal((0, 1, 2, 3))
SIGNATURES = [agreement.sign_proposal(BALLOT, PRIVATE[u].signing, u, AGREED) for u in range(4)]

SAMPLED = ("sealing_key", "masking_key", "self_seed", "key_coefficients", "seed_coefficients", "coefficients")
PAIRWISE, SIGNED = test_secagg.case_of(test_secagg.TINY), test_secagg_active.case_of(test_secagg_active.TINY)
AGREED_ROUND = secagg.Round(PAIRWISE.parameters, PAIRWISE.parameters.graph(), SESSION, 0)
SIGNED_ROUND = secagg_active.agreed(SIGNED.parameters, SESSION, 0)
SIGNERS = keys.Roster(tuple(signatures.verification_key(SIGNED.signing[user]) for user in range(5)))
CONTEXT = AGREED_ROUND.context()

ASYNC, SIGNED_BUFFER = basecagg.PRESETS["tiny"], basecagg_active.PRESETS["tiny"]
NUMBERS_OF = {name: getattr(ASYNC, name) for name in ("q", "N", "D", "U", "T", "d", "K", "c_l", "c_g", "tau_max")}
STORED_SERVER = (*NUMBERS_OF, "format", "round", "session", "records", "buffer", "entries", "signers", "user", "stamp",
          "weight", "vector", "kind", "numerator", "denominator", "start", "staleness", "W", "parameters", "sum",
          "weights", "users", "N - D", "modulus")  # fmt: skip
ENTRIES = tuple(basecagg.Entry(user, 0, 3) for user in range(3))
KEPT = {user: basecagg.Held(0, SHARES[user]) for user in range(5)}
FILLED = buffered_scene(ASYNC, 9)
LEADING = basecagg_active.user_start(SIGNED_BUFFER, SESSION, 0, 0, PRIVATE[0], PUBLIC)
TRAINING = buffered_scene(ASYNC, 3).network.states[0]
STAMPED = {"stamp": 3, "sender": 0, "receiver": 1}
TURNS: list[basecagg_runs.Turn] = [basecagg_runs.Start(0), basecagg_runs.Upload(0)]
SUPPLIES = basecagg_runs.draw_randomness(ASYNC, SeededSource(b"seed", "turns"), TURNS)

EITHER = access_tree.any_of(b"A", b"B")
AUTHORITY, MASTER = attribute_keys.setup(alpha=3, beta=5)
HOLDER = attribute_keys.issue(MASTER, [b"A"], key_blinding=7, attribute_blindings={b"A": 9})
OPEN: dict[str, Any] = {"session": SESSION, "associated": b"x"}
SEALED_FOR_A = attributes.encrypt(AUTHORITY, EITHER, b"x", **OPEN, secret=11, coefficients=())

KEY_RING = attribute_boxes.key_ring(alpha=3, beta=5)
ADDRESSED = Address(Epoch(KEY, SESSION, 0, 3, own=True), "pair-box", 0, 0, 1)
(RING_KEY,) = KEY_RING.secrets(ADDRESSED.epoch, (ADDRESSED.slot,), ((21, 22),))

CALLS: dict[str, Call] = {
    "Ring": Call(Ring, {"modulus": 7}),
    "PrimeField": Call(PrimeField, {"modulus": 7}),
    "Ring.add": method(FIELD, "add", **PAIR),
    "Ring.subtract": method(FIELD, "subtract", **PAIR),
    "Ring.multiply": method(FIELD, "multiply", **PAIR),
    "Ring.sum": method(FIELD, "sum", rows=vector([[1, 2], [3, 4]])),
    "Ring.matmul": method(FIELD, "matmul", a=vector([[1, 2]]), b=vector([[3], [4]])),
    "Ring.encode_signed": method(FIELD, "encode_signed", values=np.array([1, -1])),
    "Ring.decode_signed": method(FIELD, "decode_signed", values=vector([1, 6])),
    "PrimeField.inverse": method(FIELD, "inverse", a=vector([1, 2])),
    "PrimeField.solve": method(FIELD, "solve", matrix=vector([[1, 2], [0, 3]]), right=vector([[1], [2]])),
    "PrimeField.rank": method(FIELD, "rank", matrix=vector([[1, 2], [0, 3]])),
    "PrimeField.powers": method(FIELD, "powers", sizes=("count",), points=vector([1, 2]), count=3),
    "MaskCode": Call(MaskCode, {"N": 5, "U": 3, "T": 1, "points": (1, 2, 3, 4, 5)}, {"field": FIELD}),
    "MaskCode.share_length": method(CODE, "share_length", d=3),
    "MaskCode.sub_masks": method(CODE, "sub_masks", "d", mask=vector([1, 2, 3])),
    "MaskCode.encode": method(CODE, "encode", "d", mask=vector([1, 2, 3]), noise=vector([[4, 5]])),
    "MaskCode.decode": method(CODE, "decode", users=[0, 2, 4], shares=SHARES[[0, 2, 4]], d=3),
    "check_prime": Call(mds.check_prime, {"q": 7, "N": 5}),
    "default_points": Call(mds.default_points, {"N": 5}, sizes=("N",)),
    "quantize": Call(
        quantizer.quantize,
        {"x": np.array([0.5, -0.25]), "level": 8, "weight": 2, "rounding": np.array([0.5, 0.0])},
        {"ring": RING},
    ),
    "largest_level": Call(
        quantizer.largest_level, {"modulus": 2**32 - 5, "weight": 100, "magnitude": Fraction(1, 2)}
    ),
    "dequantize": Call(
        quantizer.dequantize, {"values": vector([1, 2**32 - 1]), "level": 8, "format": "binary32"}, {"ring": RING}
    ),
    "elements_from_bytes": Call(sampling.elements_from_bytes, {"data": bytes(12), "n": 2}, {"ring": RING}),
    "SeededSource": Call(SeededSource, {"seed": b"seed", "label": "label"}),
    "SeededSource.take": method(SeededSource(b"seed", "label"), "take", sizes=("count",), count=4),
    "SystemSource.take": method(SystemSource(), "take", sizes=("count",), count=4),
    "draw_elements": Call(entropy.draw_elements, {"shape": (2, 2)}, {"source": SystemSource(), "ring": RING}),
    "draw_rounding": Call(entropy.draw_rounding, {"d": 3}, {"source": SystemSource()}, sizes=("d",)),
    "encode MaskShare": message(MaskShare, "payload", b"abc"),
    "encode MaskedUpdate": message(MaskedUpdate, "masked", vector([1, 2])),
    "encode SurvivingSet": message(SurvivingSet, "users", (0, 1, 2)),
    "encode AggregatedShare": message(AggregatedShare, "share", vector([1, 2])),
    "decode": Call(codec.decode, {"data": codec.encode(GREETINGS[0])}, {"kind": MaskedUpdate}),
    "vector_bytes": Call(codec.vector_bytes, {"vector": vector([1, 2])}),
    "vector_from_bytes": Call(codec.vector_from_bytes, {"data": codec.vector_bytes(vector([1, 2]))}),
    "stored_vector": Call(codec.stored_vector, {"text": codec.vector_bytes(vector([1, 2])).hex()}, {"name": "text"}),
    "accept": Call(
        shape.accept,
        {"inbox": GREETINGS},
        {"kinds": (MaskedUpdate,), "endpoint": shape.Endpoint(SESSION, 0, 9), "senders": (0, 1)},
        also=HEADER,
    ),
    "take_randomness": Call(shape.take_randomness, {"randomness": {"mask": vector([1])}}, {"names": ("mask",)}),
    "check_dropouts": Call(
        shape.check_dropouts, {"dropouts": {"share": [0]}}, {"table": lightsecagg.TABLE, "users": range(5)}
    ),
    "run_synchronous": Call(
        lambda **values: shape.run_synchronous(stage(0), **values),
        {"dropouts": {"share": [0]}, "randomness": ROUND.randomness},
        also=("mask", "noise"),
    ),
    "Network.take": Call(
        lambda **values: stage(0).take(lightsecagg.TABLE[0], **values),
        {"party": 0, "randomness": ROUND.randomness[0]},
        also=("mask", "noise"),
    ),
    "is_prime": Call(modular.is_prime, {"n": 7}),
    "Parameters": Call(Parameters, {"q": 7, "N": 5, "D": 1, "U": 3, "T": 1, "d": 3}),
    "mask_update": Call(
        lightsecagg.mask_update, {"update": vector([1, 2]), "mask": vector([3, 4])}, {"field": FIELD}, ("a", "b")
    ),
    "aggregate_shares": Call(
        lightsecagg.aggregate_shares, {"N": 5, "T": 1, "surviving": [0, 1, 2], "held": HELD}, {"field": FIELD}
    ),
    "recover": Call(
        lightsecagg.recover,
        {"masked_sum": vector([1, 2, 3]), "users": [0, 2, 4], "shares": SHARES[[0, 2, 4]]},
        {"parameters": TINY},
    ),
    "user_start": Call(
        lightsecagg.user_start,
        {**START, "user": 0, "update": vector([1, 2, 3])},
        {"parameters": TINY, "channel": PlainChannel()},
    ),
    "server_start": Call(lightsecagg.server_start, START, {"parameters": TINY}),
    **{step.name: step_call(row) for row, step in enumerate(lightsecagg.TABLE)},
    "check_fields": Call(
        lambda **named: codec.check_fields(SurvivingSet(SESSION, 0, 0, 0, **named)), {"users": (0, 1)}
    ),
    "check_header": Call(lambda **header: codec.check_header(SurvivingSet(**header, users=())), {**START, **PARTIES}),
    "check_inbox": Call(shape.check_inbox, {"inbox": GREETINGS}, also=HEADER),
    "check_randomness": Call(
        shape.check_randomness,
        {"randomness": ROUND.randomness},
        {"table": lightsecagg.TABLE, "users": range(5)},
        ("mask", "noise"),
    ),
    "expand": Call(prg.expand, {"key": KEY, "n": 3}, {"ring": FIELD}, sizes=("n",)),
    "public_key": Call(keys.public_key, {"private": KEY}),
    "agree": Call(keys.agree, {"private": KEY, "public": keys.public_key(bytes(32))}),
    "refuse_weak": Call(keys.refuse_weak, {"public": keys.public_key(KEY)}, also=("private",)),
    "derive": Call(keys.derive, {"secret": KEY, "session": SESSION}, {"info": b""}),
    "Roster": Call(keys.Roster, {"keys": (keys.public_key(KEY), keys.public_key(bytes(32)))}),
    "SealedChannel.close": Call(
        lambda **values: sealed()[0].close(**values), {"sender": 0, "receiver": 1, "plaintext": b"x"}  # noqa: PLW0108 - a channel seals once
    ),
    "SealedChannel.open": Call(
        lambda **values: sealed()[1].open(**values),  # noqa: PLW0108 - a channel seals once
        {"sender": 0, "receiver": 1, "payload": sealed()[0].close(0, 1, b"x")},
    ),
    "open_round": Call(lightsecagg.open_round, {"updates": ROUND.updates, **START}, {"parameters": TINY}),
    "run_round": Call(
        run_round,
        {"updates": ROUND.updates, "randomness": ROUND.randomness, "dropouts": {"share": [0]}, **START},
        {"parameters": TINY},
        ("mask", "noise"),
    ),
    "check_surviving_set": Call(
        lightsecagg.check_surviving_set, {"N": 5, "T": 1, "surviving": [0, 1, 2], "held": HELD}
    ),
    "verification_key": Call(signatures.verification_key, {"private": KEY}),
    "sign": Call(signatures.sign, {"private": KEY, "data": b"data"}),
    "verify": Call(
        signatures.verify,
        {"public": signatures.verification_key(KEY), "data": b"x", "signature": signatures.sign(KEY, b"x")},
    ),
    "check_threshold": Call(agreement.check_threshold, {"W": 4, "N": 5, "D": 1, "T": 1}),
    "words": Call(agreement.words, {"values": [1, 2]}),
    "sign_proposal": Call(
        agreement.sign_proposal, {"private": KEY, "user": 1}, {"ballot": BALLOT, "proposal": AGREED}
    ),
    "check_signature": Call(
        agreement.check_signature,
        {"user": 1, "signature": SIGNATURES[1]},
        {"ballot": BALLOT, "proposal": AGREED, "blamed": 1},
    ),
    "check_quorum": Call(
        agreement.check_quorum,
        {"signers": [0, 1, 2, 3], "signatures": b"".join(SIGNATURES)},
        {"ballot": BALLOT, "proposal": AGREED},
    ),
    "encode SignedSet": message(lightsecagg_active.SignedSet, "signature", b"abc"),
    "encode Quorum": Call(
        lambda **fields: codec.encode(lightsecagg_active.Quorum(SESSION, 0, 0, 1, **fields)),
        {"signers": (0, 1), "signatures": b"abc"},
    ),
    "Parameters active": Call(
        lightsecagg_active.Parameters, {"q": 7, "N": 5, "D": 1, "U": 3, "T": 1, "d": 3, "W": 4}
    ),
    "user_start active": Call(
        lightsecagg_active.user_start,
        {**START, "user": 0, "update": vector([1, 2, 3])},
        {"parameters": ACTIVE, "keys": PRIVATE[0], "roster": PUBLIC},
    ),
    "server_start active": Call(
        lightsecagg_active.server_start, START, {"parameters": ACTIVE, "roster": PUBLIC}
    ),
    **{f"{step.name} active": active_call(row) for row, step in enumerate(lightsecagg_active.TABLE)},
    "roster_of": Call(lightsecagg_active.roster_of, {"keys": PRIVATE}, {"parameters": ACTIVE}),
    "open_round active": Call(
        lightsecagg_active.open_round, {"updates": ROUND.updates, "keys": PRIVATE, **START}, {"parameters": ACTIVE}
    ),
    "run_round active": Call(
        lightsecagg_active.run_round,
        {"updates": ROUND.updates, "randomness": ROUND.randomness, "keys": PRIVATE, "dropouts": {"confirm": [0]},
         **START},
        {"parameters": ACTIVE},
        ("mask", "noise"),
    ),
    "Ring.signed_sum": method(FIELD, "signed_sum", "terms", start=vector([1, 2])),
    "Ring.zeros": method(FIELD, "zeros", sizes=("d",), d=3),
    "stream": Call(lambda **values: list(prg.stream(**values)), {"key": KEY, "n": 3}, {"ring": FIELD}, sizes=("n",)),
    "parcels": Call(
        shape.parcels,
        {"inbox": [MaskShare(SESSION, 0, 0, 1, b""), MaskShare(SESSION, 0, 1, 0, b"")]},
        {"kind": MaskShare, "endpoint": shape.Endpoint(SESSION, 0, SERVER), "roster": (0, 1)},
        also=HEADER,
    ),
    "share": Call(shamir.share, {"secret": KEY, "coefficients": (1, 2), "users": (0, 1, 2)}, also=("t", "n")),
    "reconstruct": Call(
        shamir.reconstruct, {"t": 3, "users": (0, 1, 2), "shares": shamir.share(KEY, (1, 2), (0, 1, 2))}
    ),
    "elements": Call(shamir.elements, {"values": (1, 2)}, {"name": "values"}),
    "check_numbers": Call(shamir.check_numbers, {"t": 2, "n": 3}),
    "element_bytes": Call(shamir.element_bytes, {"value": 7}),
    "element_from_bytes": Call(shamir.element_from_bytes, {"data": bytes(66)}, {"name": "data"}),
    "coefficients_from_bytes": Call(shamir.coefficients_from_bytes, {"data": bytes(132)}),
    "Parameters of FedBuff": Call(
        fedbuff.Parameters,
        {"N": 5, "d": 3, "K": 2, "tau_max": 3, "eta_g": 1.0, "staleness": LATE, "c_g": 4, "c_l": 8},
    ),
    "start of FedBuff": Call(fedbuff.start, {"model": np.zeros(3)}, {"parameters": BUFFERED}),
    "receive": Call(
        fedbuff.receive, {"user": 1, "stamp": 0, "values": np.zeros(3)}, {"state": WAITING}
    ),
    "weights": Call(fedbuff.weights, {"rounding": np.array([0.5])}, {"state": WAITING}),
    "step": Call(fedbuff.step, {"rounding": np.array([0.5, 0.25])}, {"state": FULL}),
    "restore": Call(
        fedbuff.restore, {"data": fedbuff.store(WAITING)}, also=("parameters", "model", "round", "buffer", "accepted",
                                                                  "user", "stamp", "values", "staleness", *STORED)
    ),
    "local_update": Call(fedbuff.local_update, {"downloaded": np.zeros(3), "trained": np.ones(3)}),
    "fraction": Call(staleness.fraction, {"value": "1/2"}, {"name": "value"}),
    "Staleness": Call(
        staleness.Staleness, {"kind": "hinge", "numerator": 1, "denominator": 2, "start": 3}
    ),
    "Staleness.polynomial": Call(staleness.Staleness.polynomial, {"alpha": "1/2"}),
    "Staleness.hinge": Call(staleness.Staleness.hinge, {"a": 1, "b": 3}),
    "Staleness.power": method(staleness.Staleness.polynomial(1), "power", tau=3),
    "read": Call(staleness.read, {"text": "polynomial:1/2"}, {"name": "text"}),
    "floor_weight": Call(staleness.floor_weight, {"c_g": 64, "tau": 2}, {"staleness": LATE}),
    "least_level": Call(staleness.least_level, {"tau": 2}, {"staleness": LATE}),
    "admissible_weights": Call(staleness.admissible_weights, {"c_g": 64, "tau": 2}, {"staleness": LATE}),
    "realised_weight": Call(
        staleness.realised_weight, {"c_g": 64, "tau": 2, "draw": 0.5}, {"staleness": LATE}
    ),
    "draw_coefficients": Call(
        entropy.draw_coefficients, {"count": 3}, {"source": SystemSource()}, sizes=("count",)
    ),
    "self_key": Call(masks.self_key, {"seed": KEY}, {"context": CONTEXT, "user": 0}, ("secret",)),
    "commitment": Call(masks.commitment, {"seed": KEY}, {"context": CONTEXT, "user": 0}),
    "pairwise_key": Call(masks.pairwise_key, {"secret": KEY}, {"context": CONTEXT, "keys": {0: KEY, 1: bytes(32)}}),
    "Graph": Call(graph.Graph, {"order": (0, 1, 2, 3), "k": 2}),
    "Graph.neighbours": method(graph.Graph((0, 1, 2, 3), 2), "neighbours", user=1),
    "check_degree": Call(graph.check_degree, {"k": 2, "most": 3}, {"N": 4}, sizes=("most",)),
    "draw_order": Call(graph.draw_order, {"N": 4}, {"source": SystemSource()}, sizes=("N",)),
    "Parameters of SecAgg": Call(secagg.Parameters, {"R": 8, "N": 5, "D": 1, "T": 1, "t": 3, "k": 4, "d": 3}),
    "Parameters of SecAgg, active": Call(
        secagg_active.Parameters, {"R": 8, "N": 5, "D": 1, "T": 1, "t": 4, "k": 4, "d": 3}, also=("W",)
    ),
    "Round": Call(
        lambda **values: secagg.Round(PAIRWISE.parameters, PAIRWISE.parameters.graph(), **values),
        {"session": SESSION, "number": 0},
        also=("round",),
    ),
    "Parameters.graph": method(PAIRWISE.parameters, "graph", order=(0, 1, 2, 3, 4)),
    "agreed": Call(
        secagg_active.agreed, {"session": SESSION, "number": 0}, {"parameters": SIGNED.parameters}
    ),
    "mask_update of SecAgg": Call(
        secagg.mask_update,
        {"update": vector([1, 2]), "self_mask": vector([3, 4])},
        {"ring": FIELD, "user": 0, "pairwise": [(1, vector([5, 6]))]},
        (),
    ),
    "unmask": Call(
        secagg.unmask,
        {"masked_sum": vector([1, 2])},
        {"ring": FIELD, "self_masks": [vector([3, 4])], "left": [(0, 1, vector([5, 6]))]},
        (),
    ),
    "user_start of SecAgg": Call(secagg.user_start, {"user": 0, "update": vector([1, 2, 3])}, {"round": AGREED_ROUND}),
    "user_start of SecAgg, active": Call(
        secagg_active.user_start,
        {"user": 0, "update": vector([1, 2, 3]), "signing": SIGNED.signing[0]},
        {"round": SIGNED_ROUND, "roster": SIGNERS},
        ("private",),
    ),
    **{f"{step.name} of SecAgg": pairwise_call(secagg, PAIRWISE, test_secagg.stage(PAIRWISE, row), row)
       for row, step in enumerate(secagg.TABLE)},
    **{f"{step.name} of SecAgg, active":
       pairwise_call(secagg_active, SIGNED, test_secagg_active.stage(SIGNED, row), row)
       for row, step in enumerate(secagg_active.TABLE)},
    "open_round of SecAgg": Call(
        secagg.open_round,
        {"updates": PAIRWISE.updates, "order": (0, 1, 2, 3, 4), **START},
        {"parameters": PAIRWISE.parameters},
    ),
    "run_round of SecAgg": Call(
        secagg.run_round,
        {"updates": PAIRWISE.updates, "randomness": PAIRWISE.randomness, "dropouts": {"share_keys": [0]},
         "order": (0, 1, 2, 3, 4), **START},
        {"parameters": PAIRWISE.parameters},
        (*SAMPLED, "private", "t", "secret"),
    ),
    "run_round of SecAgg, active": Call(
        secagg_active.run_round,
        {"updates": SIGNED.updates, "randomness": SIGNED.randomness, "signing": SIGNED.signing,
         "dropouts": {"share_keys": [0]}, **START},
        {"parameters": SIGNED.parameters},
        (*SAMPLED, "private", "t", "secret"),
    ),
    "Ring.weighted_sum": method(
        FIELD, "weighted_sum", weights=vector([1, 2]), rows=[vector([3, 4]), vector([5, 6])]
    ),
    "SealedStampedChannel.close": Call(
        lambda **values: stamped()[0].close(**values), {**STAMPED, "plaintext": b"x"}  # noqa: PLW0108 - a channel seals once
    ),
    "SealedStampedChannel.open": Call(
        lambda **values: stamped()[1].open(**values),  # noqa: PLW0108 - as above
        {**STAMPED, "payload": stamped()[0].close(3, 0, 1, b"x")},
    ),
    "Parameters of BASecAgg": Call(basecagg.Parameters, {**NUMBERS_OF, "staleness": LATE}, also=("N - D",)),
    "Parameters of BASecAgg, active": Call(
        basecagg_active.Parameters, {**NUMBERS_OF, "staleness": LATE, "W": 4}, also=("N - D",)
    ),
    "with_signatures": Call(basecagg_active.with_signatures, {"W": 4}, {"parameters": ASYNC}),
    "budget": Call(buffers.budget, {"total_weight": 3}, {"ring": FIELD}),
    "encode_update": Call(
        basecagg.encode_update,
        {"x": np.array([0.5, -0.25, 1.0]), "rounding": np.array([0.5, 0.0, 0.25])},
        {"parameters": ASYNC},
    ),
    "check_levels": Call(
        buffers.check_levels,
        {"modulus": 97, "K": 3, "c_l": 1, "c_g": 3, "tau_max": 2},
        {"name": "q", "staleness": LATE},
        ("q", "K * c_g", "c_l * K * c_g", "c_g"),
    ),
    "weight_sum": Call(buffers.weight_sum, {"weights": vector([1, 2])}, {}, ("sum(weights)",)),
    "check_update": Call(buffers.check_update, {"total_weight": 1, "update": vector([1, 2])}, {"ring": FIELD}),
    "mask_update of BASecAgg": Call(
        basecagg.mask_update,
        {"total_weight": 1, "update": vector([1, 2]), "mask": vector([3, 4])},
        {"field": FIELD},
        ("a", "b"),
    ),
    "weigh": Call(
        basecagg.weigh, {"round": 2, "stamps": [0, 1], "draws": [0.5, 0.25]}, {"parameters": ASYNC}, ("draw",)
    ),
    "check_rounding": Call(
        buffers.check_rounding, {"value": np.array([0.5, 0.25]), "count": 2}, {"name": "value"}
    ),
    "entries_of": Call(
        basecagg.entries_of, {"users": [0, 1], "stamps": vector([0, 0]), "weights": vector([3, 3])}
    ),
    "check_entries": Call(basecagg.check_entries, {"round": 0, "entries": ENTRIES}, {"parameters": ASYNC}),
    "check_buffer": Call(
        basecagg.check_buffer, {"round": 0, "entries": ENTRIES, "held": KEPT}, {"parameters": ASYNC}
    ),
    "combine_shares": Call(
        basecagg.combine_shares, {"round": 0, "entries": ENTRIES, "held": KEPT}, {"parameters": ASYNC}, ("rows",)
    ),
    "recover of BASecAgg": Call(
        basecagg.recover,
        {"weights": vector([1, 2]), "masked": [vector([1, 2, 3])] * 2, "users": [0, 2, 4],
         "shares": SHARES[[0, 2, 4]]},
        {"code": CODE},
        ("rows", "sum"),
    ),
    "average": Call(
        buffers.average,
        {"level": 3, "weights": vector([1, 2]), "total": vector([1, 2])},
        {"ring": FIELD},
        ("c_l", "sum"),
    ),
    "user_start of BASecAgg": Call(
        basecagg.user_start,
        {**START, "user": 0},
        {"parameters": ASYNC, "channel": channels.PlainStampedChannel()},
    ),
    "server_start of BASecAgg": Call(basecagg.server_start, START, {"parameters": ASYNC}),
    "user_trained": Call(basecagg.user_trained, {"update": vector([1, 1, 1])}, {"state": TRAINING}),
    "user_trained, active": Call(
        basecagg_active.user_trained,
        {"update": vector([1, 1, 1])},
        {"state": replace(LEADING, base=TRAINING)},
    ),
    **{f"{step.name} of BASecAgg": buffered_call(ASYNC, row) for row, step in enumerate(basecagg.TABLE)},
    **{f"{step.name} of BASecAgg, active": buffered_call(SIGNED_BUFFER, row)
       for row, step in enumerate(basecagg_active.TABLE)},
    "user_start of BASecAgg, active": Call(
        basecagg_active.user_start,
        {**START, "user": 0},
        {"parameters": SIGNED_BUFFER, "keys": PRIVATE[0], "roster": PUBLIC},
    ),
    "server_start of BASecAgg, active": Call(
        basecagg_active.server_start, START, {"parameters": SIGNED_BUFFER, "roster": PUBLIC}
    ),
    "restore of BASecAgg": stored_call(basecagg_store.restore, basecagg_store.store(FILLED.server)),
    "restore of what was begun": stored_call(begun.restore, {SESSION.hex(): 3}),
    "restore active": stored_call(
        basecagg_active.restore,
        basecagg_active.store(buffered_scene(SIGNED_BUFFER, 11).network.states[SERVER]),
        roster=PUBLIC,
    ),
    "roster_of_users": Call(lightsecagg_active.roster_of_users, {"N": 5, "keys": PRIVATE}),
    "open_session": Call(basecagg_runs.open_session, START, {"parameters": ASYNC}),
    "open_session active": Call(
        basecagg_active.open_session, {"keys": PRIVATE, **START}, {"parameters": SIGNED_BUFFER}
    ),
    "channels_of": Call(
        basecagg_runs.channels_of,
        {"channels": dict.fromkeys(range(5), channels.PlainStampedChannel())},
        {"parameters": ASYNC},
    ),
    "run_schedule": Call(
        basecagg_runs.run_schedule,
        {"updates": [vector([1, 1, 1])], "schedule": TURNS, "randomness": SUPPLIES, **START},
        {"parameters": ASYNC},
        ("mask", "noise", "masks", "noises", "roundings", "update", "party"),
    ),
    "run_schedule active": Call(
        basecagg_active.run_schedule,
        {"updates": [vector([1, 1, 1])], "schedule": TURNS, "randomness": SUPPLIES, "keys": PRIVATE, **START},
        {"parameters": SIGNED_BUFFER},
        ("mask", "noise", "masks", "noises", "roundings", "update", "party"),
    ),
    "supplies": Call(
        basecagg_runs.supplies,
        {"updates": [vector([1, 1, 1])], "randomness": SUPPLIES},
        {"parameters": ASYNC},
        ("masks", "noises", "roundings"),
    ),
    "run_turns": Call(
        lambda schedule: basecagg_runs.run_turns(fresh_play(), schedule), {"schedule": TURNS}, also=("party",)
    ),
    "scalar": Call(scalars.scalar, {"value": 3}, {"name": "value"}),
    "scalars_from_bytes": Call(scalars.scalars_from_bytes, {"data": bytes(64)}),
    "draw_scalars": Call(entropy.draw_scalars, {"count": 3}, {"source": SystemSource()}, sizes=("count",)),
    "Leaf": Call(access_tree.Leaf, {"attribute": b"A"}),
    "Gate": Call(access_tree.Gate, {"threshold": 1, "children": (access_tree.Leaf(b"A"), EITHER)}),
    "all_of": Call(lambda child: access_tree.all_of(b"A", child), {"child": EITHER}, also=("children", "attribute")),
    "any_of": Call(lambda child: access_tree.any_of(b"A", child), {"child": EITHER}, also=("children", "attribute")),
    "check_attribute": Call(access_tree.check_attribute, {"value": b"A"}, {"name": "value"}),
    "attribute_list": Call(access_tree.attribute_list, {"value": [b"A"]}, also=("attributes",)),
    "leaves": Call(access_tree.leaves, {"tree": EITHER}),
    "tree_bytes": Call(access_tree.tree_bytes, {"tree": EITHER}),
    "coefficient_count": Call(access_tree.coefficient_count, {"tree": EITHER}),
    "share of a tree": Call(
        access_tree.share, {"tree": access_tree.all_of(b"A", b"B"), "secret": 3, "coefficients": (1,)}
    ),
    "select": Call(access_tree.select, {"tree": EITHER, "attributes": [b"A"]}),
    "read_point_1": Call(pairing.read_point_1, {"data": AUTHORITY.h.to_compressed_bytes()}),
    "read_point_2": Call(pairing.read_point_2, {"data": AUTHORITY.f.to_compressed_bytes()}),
    "PublicKey.from_bytes": method(attribute_keys.PublicKey, "from_bytes", data=AUTHORITY.to_bytes()),
    "MasterKey.from_bytes": method(attribute_keys.MasterKey, "from_bytes", data=MASTER.to_bytes()),
    "SecretKey.from_bytes": method(attribute_keys.SecretKey, "from_bytes", data=HOLDER.to_bytes()),
    "MasterKey": Call(attribute_keys.MasterKey, {"alpha": 3, "beta": 5}),
    "setup": Call(attribute_keys.setup, {"alpha": 3, "beta": 5}),
    "issue": Call(
        attribute_keys.issue,
        {"attributes": [b"A"], "key_blinding": 7, "attribute_blindings": {b"A": 9}},
        {"master": MASTER},
    ),
    "encrypt": Call(
        attributes.encrypt,
        {"tree": EITHER, "plaintext": b"x", **OPEN, "secret": 11, "coefficients": ()},
        {"public": AUTHORITY},
    ),
    "decrypt": Call(
        attributes.decrypt, {"ciphertext": SEALED_FOR_A, **OPEN}, {"public": AUTHORITY, "key": HOLDER}
    ),
    **{name: Call(*parts) for name, parts in basa_calls.CALLS.items()},
    **{name: Call(*parts) for name, parts in heterosag_calls.CALLS.items()},
    **{f"{step.name} of HeteroSAg":
       pairwise_call(heterosag, heterosag_calls.CASE, test_secagg.stage(heterosag_calls.CASE, row), row)
       for row, step in enumerate(heterosag.TABLE)},
    **{name: Call(*parts) for name, parts in cost_calls.CALLS.items()},
    **{name: Call(*parts) for name, parts in selection_calls.CALLS.items()},
    **{name: Call(*parts) for name, parts in metric_calls.CALLS.items()},
    **{name: Call(*parts) for name, parts in participation_calls.CALLS.items()},
    "key_ring": Call(attribute_boxes.key_ring, {"alpha": 3, "beta": 5}),
    "AttributeBoxes.seal": Call(
        attribute_boxes.ATTRIBUTE_BOXES.seal,
        {"seed": KEY, "sampled": (11, 12, 13)},
        {"address": ADDRESSED, "published": AUTHORITY.to_bytes()},
        ("box_secrets",),
    ),
    "AttributeBoxes.check_key": Call(
        attribute_boxes.ATTRIBUTE_BOXES.check_key,
        {"key": RING_KEY},
        {"epoch": ADDRESSED.epoch, "published": AUTHORITY.to_bytes(), "slot": ADDRESSED.slot},
    ),
    "AttributeBoxes.check_published": Call(
        lambda keys: attribute_boxes.ATTRIBUTE_BOXES.check_published(ADDRESSED.epoch, keys),
        {"keys": AUTHORITY.to_bytes()},
    ),
    "AttributeKeyRing.secrets": Call(
        lambda key_blindings: KEY_RING.secrets(ADDRESSED.epoch, (ADDRESSED.slot,), (key_blindings,)),
        {"key_blindings": (21, 22)},
    ),
    "sessions": Call(basa_buffers.sessions, {"base": SESSION, "count": 3}, sizes=("count",)),
    "Dispatcher": Call(basa_buffers.Dispatcher, {"sessions": (SESSION, OTHER)}),
    "Dispatcher.send": Call(lambda user: basa_buffers.Dispatcher((SESSION, OTHER)).send(user), {"user": 3}),
    "visits": Call(
        lambda arrivals, duration: list(visits(basa_buffers.Dispatcher((SESSION,)), arrivals, duration)),
        {"arrivals": Schedule(1, (Event(0.0, "arrive", 0),))},
        {"duration": lambda user: 1.0},
    ),
}  # fmt: skip

CORES = {
    "generator",
    "is_exchanged",
    "usual",
    "add_masks",
    "exact_matmul",
    "inner_blocks",
    "two_factors",
    "stochastic_round",
    "to_binary32",
    "round_levels",
    "field_codecs",
    "require_phase",
    "least_signers",
    "from_server",
    "from_authority",
    "row",
    "of_profile",
    "require_round",
    "sizes",
    "check_ascending",
    "draw_randomness",
    "taken",
    "usable_words",
    "words_for",
    "integers_below",
    "class_labels",
    "elements_of",
    "octets",
    "from_hex",
    "check_request",
    "sealing_context",
    "sealed_links",
    "check_key",
    "fields",
    "hash_parameters",
    "hash_keys",
    "signed_fields",
    "binding_context",
    "binding",
    "average_reals",
    "average_integers",
    "moved",
    "by_user",
    "sealed_channels",
    "ballot_of",
    "proposal_of",
    "store",
    "product",
    "quotient",
    "total",
    "evaluate",
    "read_tree",
    "base_1",
    "base_2",
    "target_base",
    "power_1",
    "hash_attribute",
    "pairing_product",
    "target_bytes",
    "point_1",
    "point_2",
    "sha256",
    "check_source",
    "role_of",
    *basa_calls.CORES,
    *heterosag_calls.CORES,
    *("mask_keys", "self_keys", "masked_update", "masked_sums", "unmasked_sums", "ready", "envelope"),
    *cost_calls.CORES,
    *selection_calls.CORES,
    "attribute",
}
"""Functions behind a boundary, and functions whose only arguments are objects of the library."""

MODULES: tuple[ModuleType, ...] = (
    limbs,
    mds,
    modular,
    quantizer,
    sampling,
    scalars,
    shamir,
    staleness,
    access_tree,
    attribute_boxes,
    attribute_keys,
    attributes,
    channels,
    entropy,
    keys,
    masks,
    pairing,
    prg,
    sealing,
    signatures,
    agreement,
    *basa_calls.MODULES,
    *heterosag_calls.MODULES,
    *selection_calls.MODULES,
    *metric_calls.MODULES,
    *participation_calls.MODULES,
    basa_buffers,
    basecagg,
    buffers,
    basecagg_active,
    basecagg_runs,
    basecagg_store,
    codec,
    fedbuff,
    graph,
    heterosag_costs,
    lightsecagg,
    lightsecagg_active,
    secagg,
    secagg_active,
    shape,
)


def public_functions() -> Iterator[str]:
    """The names of the public functions of the modules under test."""
    for module in MODULES:
        for name, value in inspect.getmembers(module, inspect.isfunction):
            if value.__module__ == module.__name__ and not name.startswith("_"):
                yield name


@pytest.mark.requirement("ERR-02")
def test_every_public_function_is_called_here_or_is_a_core() -> None:
    covered = {name.split()[0] for name in CALLS}
    assert set(public_functions()) - covered - CORES == set()
    assert covered & CORES == set()


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("name", CALLS)
def test_the_valid_calls_are_valid(name: str) -> None:
    CALLS[name]()


def with_one_more(data: Any) -> Iterator[Any]:
    """Yield stored data with an unknown member in each of its objects."""
    if isinstance(data, dict):
        yield {**data, "bogus": 1}
        for name, value in data.items():
            yield from ({**data, name: changed} for changed in with_one_more(value))
    elif isinstance(data, (list, tuple)):
        for at, value in enumerate(data):
            yield from ([*data[:at], changed, *data[at + 1 :]] for changed in with_one_more(value))


RESTORES = {name: call for name, call in CALLS.items() if name.startswith("restore")}


@pytest.mark.requirement("ERR-02")
def test_every_function_that_restores_is_among_the_calls() -> None:
    names = [one.name.rpartition(".")[2] for one in public.functions().values()]
    assert len([name for name in names if name.startswith("restore") and name != "restored"]) == len(RESTORES)


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("name", RESTORES)
def test_no_function_that_restores_drops_an_unknown_member(name: str) -> None:
    changed = list(with_one_more(RESTORES[name].arguments["data"]))
    assert changed
    for data in changed:
        with pytest.raises(ParameterError):
            RESTORES[name](data=data)


# -------------------------------------------------------------------------------------------------------- nonsense

NUMBERS = (-1, 0, 1, 2, 6, 7, 8, 2**31, 2**32 - 5, 2**32 - 1, 2**32, 2**63, 2**64, 2**100, -(2**100))
OTHERS: tuple[Any, ...] = (
    None, True, False, "", "7", "mask", "é" * 100, b"", b"7", bytearray(16), 1.0, 0.5, -1.5, float("nan"), float("inf"),
    1j, (), [], {}, set(), object(), [1, 2], (0, 0), [[1], [1, 2]], [None], ["0"], [0.5], [True], [2**100], {0: 1},
    {"mask": 1}, {"share": 3}, {"share": [[]]}, {"share": None}, {"share": np.array(7)}, {"nap": []}, {0: {}},
    {0: None},     {None: {}}, {-1: {}}, range(3), [{}], [[0, 1], [2, 3]], Ring, print,
)  # fmt: skip
ARRAYS: tuple[Any, ...] = (
    np.array(7), np.array(7, dtype=np.uint64), np.array([1, 2]), np.array([1.0, 2.0]), np.array([np.nan, np.inf]),
    np.array([True]), np.array(["a"]), np.array([None]), np.array([1, 2], dtype=np.uint32),
    np.array([], dtype=np.uint64), vector([1, 2**64 - 1]), vector([7, 7]), vector([[7]]),
    np.zeros((0, 0), dtype=np.uint64), np.zeros((2, 2, 2), dtype=np.uint64), np.array([-1, 2**62]),
    np.array([1, 2], dtype=">u8"), np.array([1e308, -1e308]),
)  # fmt: skip

nonsense = st.sampled_from(NUMBERS) | st.sampled_from(OTHERS) | st.sampled_from(ARRAYS)


def spoiled(value: Any) -> st.SearchStrategy[Any]:
    """Something near a valid value, and wrong in type, length or entries."""
    near: list[st.SearchStrategy[Any]] = [nonsense]
    if isinstance(value, np.ndarray):
        near.append(st.sampled_from(spoiled_arrays(value)))
    if isinstance(value, (list, tuple, bytes)):
        near.append(st.sampled_from(spoiled_lengths(value)))
    if isinstance(value, (list, tuple)) and value:
        near.append(nonsense.map(lambda bad: [bad, *value[1:]]))
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], codec.Message):
        near.append(st.sampled_from(value).flatmap(spoiled_message).map(lambda bad: [bad, *value[1:]]))
    if isinstance(value, dict) and value:
        near.append(st.sampled_from(sorted(value, key=repr)).flatmap(lambda key: spoiled_entry(value, key)))
    return st.one_of(near)


def spoiled_lengths(value: Any) -> list[Any]:
    """A list, tuple or bytes cut and repeated."""
    return [value[:-1], value + value[:1], value[:0], value * 2]


def spoiled_arrays(value: Any) -> list[Any]:
    """Arrays near `value`: of other shapes and dtypes, and with entries that are out of range."""
    others = [value[:-1], value[..., None], value.ravel()[:0], np.repeat(value, 2, axis=0), value.T[::-1]]
    others += [value.astype(dtype) for dtype in ("int64", "uint32", "float32", "float64", "object", "U3")]
    return [*others, value + value.dtype.type(7), value + value.dtype.type(2**62), value.tolist()]


def spoiled_message(valid: codec.Message) -> st.SearchStrategy[Any]:
    """A message with one field replaced."""
    name = st.sampled_from(sorted(codec.field_codecs(type(valid))))
    return name.flatmap(lambda n: spoiled(getattr(valid, n)).map(lambda bad: replace(valid, **{n: bad})))


def spoiled_entry(value: dict[Any, Any], key: Any) -> st.SearchStrategy[Any]:
    """A mapping with one entry replaced, removed or added."""
    without = {k: v for k, v in value.items() if k != key}
    changed = spoiled(value[key]).map(lambda bad: {**without, key: bad})
    added = st.sampled_from((-1, 99, "zeal", None, 0.5)).map(lambda other: {**value, other: value[key]})
    return changed | added | st.just(without)


@cache
def spoiled_argument(name: str, argument: str) -> st.SearchStrategy[Any]:
    """What an argument of a call may be replaced by; made once, since each strategy is checked anew."""
    return spoiled(CALLS[name].arguments[argument])


@cache
def called(name: str) -> Call:
    """A call that was made once as it is valid: a channel keeps from then on which secrets were agreed on."""
    CALLS[name]()
    return CALLS[name]


@cache
def some_arguments(name: str) -> st.SearchStrategy[set[str]]:
    """One or two arguments of a call."""
    return st.sets(st.sampled_from(sorted(CALLS[name].arguments)), min_size=1, max_size=2)


_HIDDEN = re.compile(r"^(a \w+ that holds )?(an integer of \d+ bits|\d+ bytes)$")


def shown(value: Any) -> str:
    """A value as a refusal shows it: short ones as they are, long ones cut, huge integers by their size.

    So does a container that holds one.
    """
    if isinstance(value, int) and value.bit_length() > 120:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, (bytes, bytearray)) and len(value) > 8:
        return f"{len(value)} bytes"
    if isinstance(value, (list, tuple, dict)):
        inside = [*value, *value.values()] if isinstance(value, dict) else value
        hidden = [text.split(" that holds ")[-1] for text in map(shown, inside) if _HIDDEN.search(text)]
        if hidden:
            return f"a {type(value).__name__} that holds {hidden[0]}"
    try:
        text = " ".join(repr(value).split())
    except ValueError:
        return f"a {type(value).__name__} that holds an integer of thousands of digits"
    return text if len(text) <= 60 else text[:59] + "…"


def explains(error: ParameterError, names: set[str]) -> None:
    """The text of a refusal names the parameter as the caller wrote it, the value and the bound."""
    text = str(error)
    assert text == f"{error.parameter} = {shown(error.value)}: must be {error.allowed}"
    assert set(re.findall(r"[A-Za-z_]+", error.parameter.split("[")[0])) & names, f"{text!r} names none of {names}"
    assert error.allowed


def refuse_or_return(call: Call, changed: Mapping[str, Any]) -> None:
    """Call; only the errors of the library may come out."""
    if any(call.takes_long(argument, value) for argument, value in changed.items()):
        return
    try:
        call(**changed)
    except (ParameterError, ProtocolError) as error:
        judge(error, call)


def judge(error: Exception, call: Call) -> None:
    """A failure is one of the library, and says what is wrong."""
    assert type(error).__module__ == errors.__name__
    assert str(error)
    if isinstance(error, ParameterError):
        explains(error, call.names())


@pytest.mark.requirement("ERR-01", "ERR-02", "MOD-06", "MOD-07")
@fewer(2)
@pytest.mark.parametrize("name", one_in(4, CALLS))
@given(data=st.data())
def test_only_errors_of_the_library_come_out_and_refused_calls_leave_their_arguments_alone(
    name: str, data: st.DataObject
) -> None:
    call = called(name)
    chosen = sorted(data.draw(some_arguments(name)))
    changed = {**call.arguments, **{one: data.draw(spoiled_argument(name, one)) for one in chosen}}
    before = snapshot([changed, call.fixed])
    refuse_or_return(call, changed)
    assert snapshot([changed, call.fixed]) == before


def sweep(call: Call) -> Iterator[tuple[str, Any]]:
    """Every argument of a call with every piece of nonsense, and with huge integers wherever it holds an integer."""
    for argument, value in product(call.arguments, (*NUMBERS, *OTHERS, *ARRAYS, *HUGE, *([one] for one in HUGE))):
        if not call.takes_long(argument, value):
            yield argument, value
    for argument, value in call.arguments.items():
        for huge in enlarged(value):
            yield argument, huge


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("name", one_in(2, CALLS))
def test_every_argument_with_every_nonsense(name: str) -> None:
    for argument, value in sweep(CALLS[name]):
        refuse_or_return(CALLS[name], {argument: value})


def places(data: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of each value in stored data, as the names and numbers that lead to it."""
    for at, value in data.items() if isinstance(data, dict) else enumerate(data if isinstance(data, list) else ()):
        yield (*before, at)
        yield from places(value, (*before, at))


@pytest.mark.requirement("BSA-35", "BAA-44", "FBF-16")
@pytest.mark.parametrize("name", RESTORES)
def test_a_fault_of_stored_data_is_named_by_a_member(name: str) -> None:
    stored = json.loads(json.dumps(RESTORES[name].arguments["data"]))
    names = {one for place in places(stored) for one in place if isinstance(one, str)} | {
        "data",
        "user",
        "hash",
        "round",
    }
    refused = []
    for place, value in product(places(stored), (None, "zz", {}, ...)):
        data = json.loads(json.dumps(stored))
        inner = reduce(lambda within, at: within[at], place[:-1], data)
        if value is ...:
            del inner[place[-1]]
        else:
            inner[place[-1]] = value
        try:
            RESTORES[name](data=data)
        except ParameterError as error:
            refused.append(error)
    assert refused
    for each in refused:
        assert names & set(re.findall(r"\w+", each.parameter)), each
        assert "Error(" not in str(each)


# ------------------------------------------------------------------------------------------- what exactly is refused

ONES = np.ones((5, 3), dtype=np.uint64)
ONE_SHARE = {"users": [0], "shares": SHARES[:1]}
TWICE = {"share": [0], "upload": [0]}
NOBODY = {"dropouts": {"share": range(5)}}
NO_SHARE = {0: vector([]), 1: vector([1]), 2: vector([2])}
FINE = {"modulus": 2**32, "K": 2**20, "c_l": 2**32}
PHASES = "a phase of users: share, upload, recover"
GIVEN = "given for every user that takes part in"
_OF_W = "must be an integer of at least 4, so that 2*W > N + T = 6, and at most N - D = 4"
_OF_C = ": at least 1 / s(tau_max) for tau_max = 2"
REFUSED: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("Ring", {"modulus": 1}, ParameterError, "modulus = 1: must be an integer in [2, 4294967296]"),
    ("Ring", {"modulus": 2**32 + 1}, ParameterError, "modulus = 4294967297: must be an integer in [2, 4294967296]"),
    ("PrimeField", {"modulus": 9}, ParameterError, "modulus = 9: must be a prime"),
    ("Ring.add", {"a": vector([1, 7])}, NonCanonical, "a[1] = 7: must be in [0, 7)"),
    ("Ring.add", {"b": vector([1])}, LengthMismatch, "b.shape = (1,): must be (2)"),
    ("Ring.encode_signed", {"values": np.array([4])}, OutOfRange, "values = 4: must be in [-3, 3] for the modulus 7"),
    ("PrimeField.inverse", {"a": vector([1, 0])}, OutOfRange, "a = 0: must be different from 0 to have an inverse"),
    ("MaskCode", {"T": 3}, ParameterError, "T = 3: must be an integer in [1, 2]"),
    ("MaskCode", {"U": 6}, ParameterError, "U = 6: must be an integer in [2, 5]"),
    ("MaskCode", {"N": 7}, ParameterError, "N = 7: must be an integer in [2, 6]"),
    ("MaskCode", {"points": (0, 1, 2, 3, 4)}, ParameterError, "points = 0: must be an integer in [1, 6]"),
    ("MaskCode.decode", {"users": [0, 2, 2]}, DuplicateUser, "users = 2: must be a user that is named once"),
    ("MaskCode.decode", {"users": [0, 2, 5]}, UnknownUser, "users = 5: must be a user in [0, 5)"),
    ("MaskCode.decode", ONE_SHARE, TooFewSurvivors, "1 shares are given and U = 3 are needed"),
    ("quantize", {"x": np.array([0.5, np.nan])}, OutOfRange, "x[1] = nan: must be finite"),
    ("quantize", {"x": np.array([np.inf, 0.5])}, OutOfRange, "x[0] = inf: must be finite"),
    ("quantize", {"level": 0}, ParameterError, "level = 0: must be an integer in [1, 4294967296]"),
    ("quantize", {"weight": 0}, ParameterError, "weight = 0: must be an integer >= 1"),
    ("quantize", {"rounding": np.array([0.5, 1.0])}, OutOfRange, "rounding[1] = 1.0: must be in [0, 1)"),
    ("Parameters", {"q": -1}, ParameterError, "q = -1: must be a prime in [6, 4294967291]"),
    ("Parameters", {"q": 9}, ParameterError, "q = 9: must be a prime in [6, 4294967291]"),
    ("Parameters of BASecAgg", {"q": 2}, ParameterError, "q = 2: must be a prime in [6, 4294967291]"),
    ("Parameters of BASecAgg", {"N": -1}, ParameterError, "N = -1: must be an integer in [3, 4294967290]"),
    ("Parameters of BASecAgg", {"D": -1}, ParameterError, "D = -1: must be an integer in [0, 3]"),
    ("Parameters of BASecAgg", {"tau_max": -1}, ParameterError, "tau_max = -1: must be an integer in [0, 2147483647]"),
    ("Parameters of BASA", {"S": -1}, ParameterError, "S = -1: must be an integer in [0, 65536]"),
    ("Parameters of BASA", {"T": -1}, ParameterError, "T = -1: must be an integer in [1, 4294967295]"),
    ("Parameters of BASecAgg", {"c_l": -1}, ParameterError, "c_l = -1: must be an integer in [1, 4294967296]"),
    ("Parameters of BASecAgg", {"d": 2**54}, ParameterError, f"d = {2**54}: must be an integer in [1, 4294967295]"),
    ("Parameters", {"q": 5}, ParameterError, "q = 5: must be a prime in [6, 4294967291]"),
    ("Parameters", {"D": 5}, ParameterError, "D = 5: must be an integer in [0, 2]"),
    ("Parameters", {"D": 2, "U": 4}, ParameterError, "N - D = 3: must be at least max(U, T + 2) = 4"),
    ("Parameters", {"U": 5}, ParameterError, "N - D = 4: must be at least max(U, T + 2) = 5"),
    ("Parameters", {"T": 0}, ParameterError, "T = 0: must be an integer in [1, 2]"),
    ("Parameters", {"d": 0}, ParameterError, "d = 0: must be an integer in [1, 4294967295]"),
    ("Parameters of SecAgg", {"D": -1}, ParameterError, "D = -1: must be an integer in [0, 2]"),
    ("Parameters of SecAgg", {"T": 5}, ParameterError, "T = 5: must be an integer in [1, 3]"),
    ("Parameters of SecAgg", {"k": 5}, ParameterError, "k = 5: must be N - 1 = 4, or even and in [2, 2]"),
    ("Parameters of SecAgg", {"N": 2**16 + 2, "k": 2**16}, ParameterError, "k = 65536: must be in [2, 65535]"),
    ("Parameters of SecAgg", {"N": 2**16 + 3, "k": 2**16}, ParameterError, "k = 65536: must be even and in [2, 65534]"),
    ("aggregate_shares", {"surviving": []}, TooFewSurvivors, "0 users survive and T + 2 = 3 are needed"),
    ("Parameters active", {"W": 3}, ParameterError, f"W = 3: {_OF_W}"),
    ("Parameters active", {"W": 5}, ParameterError, f"W = 5: {_OF_W}"),
    ("user_start", {"round": -1}, ParameterError, "round = -1: must be an integer in [0, 4294967295]"),
    ("user_start", {"user": 5}, ParameterError, "user = 5: must be an integer in [0, 4]"),
    ("user_start", {"update": vector([1, 2])}, LengthMismatch, "update.shape = (2,): must be (3)"),
    ("run_round", {"updates": ONES[:4]}, LengthMismatch, "updates.shape = (4, 3): must be (5, 3)"),
    ("run_round", {"updates": ONES * np.uint64(7)}, NonCanonical, "updates[0][0] = 7: must be in [0, 7)"),
    ("run_round", {"dropouts": {"share": [5]}}, UnknownUser, "dropouts['share'] = 5: must be a user in [0, 5)"),
    ("run_round", {"dropouts": {"nap": [0]}}, ParameterError, f"dropouts = 'nap': must be {PHASES}"),
    ("run_round", {"dropouts": TWICE}, ParameterError, "dropouts['upload'] = 0: must be a user that drops out once"),
    ("Parameters of BASecAgg", {"c_g": -1}, ParameterError, f"c_g = -1: must be an integer in [3, {2**32}]{_OF_C}"),
    ("Parameters of BASA", {"c_g": 1}, ParameterError, f"c_g = 1: must be an integer in [2, {2**32}]{_OF_C[:-1]}1"),
    (
        "check_levels",
        {"tau_max": 2**31 - 1, "staleness": staleness.Staleness.polynomial(1000)},
        ParameterError,
        f"c_g = 3: must be above {2**32}, and never is{_OF_C[:-1]}{2**31 - 1}",
    ),
    ("check_levels", FINE, ParameterError, f"c_l * K * c_g = {3 * 2**52}: must be at most 2**53"),
    (
        "Parameters of BASecAgg",
        {"N": 2**53 + 1},
        ParameterError,
        f"N = {2**53 + 1}: must be an integer in [3, {2**32 - 6}]",
    ),
    (
        "aggregate_shares",
        {"held": NO_SHARE},
        LengthMismatch,
        "held[0] = array([], dtype=uint64): must be L >= 1 elements",
    ),
    ("recover", {"masked_sum": vector([1, 2])}, LengthMismatch, "masked_sum.shape = (2,): must be (3)"),
    ("recover", {"masked_sum": vector([1, 2, 3, 4])}, LengthMismatch, "masked_sum.shape = (4,): must be (3)"),
    ("roster_of", {"keys": {}}, ParameterError, "keys = '0 entries': must be given for exactly the users 0 to 4"),
    ("weigh", {"draws": [0.5]}, LengthMismatch, "len(draws) = 1: must be 2, one for each stamp"),
    ("weigh", {"draws": [0.5] * 3}, LengthMismatch, "len(draws) = 3: must be 2, one for each stamp"),
    ("run_round", {"randomness": {}}, ParameterError, f"randomness = 'without user 1': must be {GIVEN} share"),
    *(
        (
            f"run_round of SecAgg{profile}",
            {"randomness": {user: case.randomness[user] for user in range(4)}},
            ParameterError,
            f"randomness = 'without user 4': must be {GIVEN} advertise_keys",
        )
        for profile, case in (("", PAIRWISE), (", active", SIGNED))
    ),
    ("run_round", NOBODY, TooFewSurvivors, "0 masked updates arrived and max(U, T + 2) = 3 are needed"),
    *heterosag_calls.REFUSED,
    *selection_calls.REFUSED,
]


@pytest.mark.requirement("ERR-02", "MOD-01", "MOD-02", "MOD-06", "MOD-07", "MDS-01", "MDS-02", "MDS-07", "MDS-08")
@pytest.mark.requirement("QNT-01", "QNT-08", "QNT-09", "LSA-01", "LSA-03", "LSA-09")
@pytest.mark.requirement(
    "HSA-01", "HSA-02", "HSA-03", "HSA-04", "HSA-05", "HSA-06", "HSA-07", "HSA-09", "HSA-10", "HSA-26"
)
@pytest.mark.requirement("MRA-01", "MRA-08", "MRA-09", "MRA-17", "MRA-20", "MRA-21")
@pytest.mark.parametrize(("name", "changed", "error", "text"), REFUSED, ids=range(len(REFUSED)))
def test_refusals_name_the_parameter_the_value_and_the_bound(
    name: str, changed: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as caught:
        CALLS[name](**changed)
    assert str(caught.value) == text
    assert type(caught.value) is error


EPOCH = Epoch(KEY, SESSION, 1, 3, True)
A_SOURCE = "must be a source of bytes, with a method take"
SEVEN: Any = 7
BOUND = sealing.Context("p", KEY, SESSION, 1, 1)
KNOWN = messages.Session(
    basa_cores.PRESETS["tiny"],
    SESSION,
    boxes.PER_POSITION,
    keys.Roster(tuple(bytes([at]) * 32 for at in range(6))),
    KEY,
)
NAMED: list[tuple[Callable[[], object], str]] = [
    (lambda: lightsecagg.mask_update(FIELD, SEVEN, ONES[0]), "update = 'int': must be a numpy array of dtype uint64"),
    (lambda: lightsecagg.mask_update(FIELD, ONES[0], vector([1])), "mask.shape = (1,): must be (3)"),
    (lambda: lightsecagg.mask_update(FIELD, ONES, ONES), "update.shape = (5, 3): must be (any)"),
    (lambda: basecagg.mask_update(FIELD, 1, ONES[0], vector([1])), "mask.shape = (1,): must be (3)"),
    (
        lambda: basecagg.recover(MaskCode(FIELD, 5, 3, 1), vector([1, 1]), [ONES[0]], (0, 1, 2), ONES[:3]),
        "len(masked) = 1: must be 2, one for each weight, and at least 1",
    ),
    (lambda: secagg.unmask(FIELD, vector([7]), (), ()), "masked_sum[0] = 7: must be in [0, 7)"),
    (lambda: secagg.mask_update(FIELD, 0, vector([7]), vector([1]), ()), "update[0] = 7: must be in [0, 7)"),
    (lambda: boxes.mask_key(EPOCH, KEY[:31], 0), "len(seed) = 31: must be 32 bytes"),
    (lambda: boxes.mask_key(EPOCH, KEY, -1), "source = -1: must be an integer in [0, 4294967295]"),
    (lambda: boxes.mask_key(EPOCH, KEY, 0, -1), "target = -1: must be an integer in [0, 4294967295]"),
    (lambda: masks.self_key(BOUND, KEY[:31], 0), "len(seed) = 31: must be 32 bytes"),
    (lambda: sealing.binding(BOUND, -1, 1, KEY, KEY), "sender = -1: must be an integer in [0, 4294967295]"),
    (lambda: sealing.binding(BOUND, 0, 1, KEY, KEY, "é"), "purpose = 'str': must be text in ASCII"),
    (lambda: signatures.signed_fields(BOUND, "é", 0, ()), "purpose = 'str': must be text in ASCII"),
    (lambda: signatures.signed_fields(BOUND, "p", -1, ()), "signer = -1: must be an integer in [0, 4294967295]"),
    (lambda: signatures.signed_fields(BOUND, "p", 1, (SEVEN,)), "content[0] = 'int': must be bytes"),
    (lambda: sealing.sealed_links(BOUND, {0: KEY, 1: KEY[:31]}), "len(privates[1]) = 31: must be 32 bytes"),
    (
        lambda: basecagg_runs.sealed_channels(BOUND, {0: KEY, 2: bytes(32)}),
        "privates = '2 entries': must be given for the users 0 to 1",
    ),
    (lambda: averages.weighted_mean(np.ones((2, 1)), (1, 0)), "counts[1] = 0: must be an integer in [1, 4294967295]"),
    (lambda: averages.median(np.ones((0, 1))), "len(means) = 0: must be an integer >= 1"),
    (lambda: buffers.average(FIELD, 0, ONES[0], ONES[0]), "level = 0: must be an integer in [1, 4294967296]"),
    (
        lambda: basecagg.weigh(basecagg.PRESETS["tiny"], 1, (0, 1), (0.5, 1.5)),
        "draws[1] = 1.5: must be a float in [0, 1) that is a multiple of 2**-53",
    ),
    (lambda: fedbuff.average_reals((1, 1), [np.ones(2), np.ones(3)]), "updates[1].shape = (3,): must be (2)"),
    (lambda: fedbuff.average_reals((1, 1), [np.ones(1), np.full(1, np.nan)]), "updates[1][0] = nan: must be finite"),
    (
        lambda: secagg.open_round(secagg.PRESETS["tiny"], ONES, session=SESSION, round=-1),
        "round = -1: must be an integer in [0, 4294967295]",
    ),
    (
        lambda: secagg_active.agreed(secagg_active.PRESETS["tiny"], SESSION, -1),
        "number = -1: must be an integer in [0, 4294967295]",
    ),
    (
        lambda: heterosag.open_round(
            heterosag_plan.PRESETS["tiny"], np.full((12, 4), 9, dtype=np.uint64), session=SESSION, round=0
        ),
        "updates[0][0] = 9: must be in [0, 2), in segment 0",
    ),
    (
        lambda: heterosag.pack_segments(heterosag_plan.PRESETS["tiny"].parts[:1], np.zeros(9, dtype=np.uint64)),
        "masked.shape = (9,): must be (2)",
    ),
    (lambda: heterosag.pack_segments([SEVEN], ONES[0]), "cells[0] = 'int': must be of the class Part"),
    (lambda: heterosag.unpack_segments([SEVEN], b""), "cells[0] = 'int': must be of the class Part"),
    (lambda: heterosag.unpack_segments((), b""), "cells = 'none': must be one of each segment"),
    (
        lambda: codec.encode(codec.Message(SESSION, 0, 0, 0)),
        "message = 'Message': must be a class of messages with a type number",
    ),
    (
        lambda: shape.check_ascending("the set", [None, 1], ()),  # type: ignore[list-item]
        "users = 'NoneType': must be an integer, each one if several are given",
    ),
    (
        lambda: secagg.masked_update(secagg.server_start(AGREED_ROUND), [1]),  # type: ignore[arg-type]
        "state = 'ServerState': must be of the class UserState",
    ),
    (
        lambda: secagg.masked_update(secagg.user_start(AGREED_ROUND, 0, PAIRWISE.updates[0]), [1]),
        "received = [1]: must be users with whom the user has keys of masks",
    ),
    (
        lambda: heterosag.pack_segments(heterosag_plan.cells_of(heterosag_plan.PRESETS["tiny"], 0)[1:], ONES[0]),
        "cells[0].start = 2: must be 0, where the cell before it ends",
    ),
    (
        lambda: heterosag.unpack_segments(heterosag_plan.PRESETS["tiny"].parts[:2], b""),
        "cells[1].start = 0: must be 2, where the cell before it ends",
    ),
    (
        lambda: secagg.masked_sums(secagg.PRESETS["tiny"], {0: np.zeros(4, dtype=np.uint64)}),
        "masked[0].shape = (4,): must be (3)",
    ),
    (
        lambda: secagg.mask_keys(
            secagg.open_round(secagg.PRESETS["tiny"], ONES, session=SESSION, round=0).states[0].round, -1, {}, {}
        ),
        "user = -1: must be an integer in [0, 4]",
    ),
    (
        lambda: multi_round.leave_out(
            multi_round.server_start(
                multi_round.Parameters(batches.Parameters(12, 6, 3), secagg.Parameters(97, 6, 1, 1, 3, 5, 2)),
                SESSION,
                0,
                range(6),
            ),
            [SEVEN],
        ),
        "inbox = 7: must be a sequence of messages",
    ),
    (lambda: secagg.draw_randomness(secagg.PRESETS["tiny"], {1: SEVEN}), f"sources[1] = 'int': {A_SOURCE}"),
    (
        lambda: secagg.draw_randomness(secagg.PRESETS["tiny"], {1: np.zeros(99)}),  # type: ignore[dict-item]
        f"sources[1] = 'ndarray of dtype float64': {A_SOURCE}",
    ),
    (
        lambda: graph.Graph((0, 1, 2, 3), 2).core([[1]], 0),  # type: ignore[list-item]
        "users = 'list': must be an integer, each one if several are given",
    ),
    (lambda: graph.Graph((0, 1, 2, 3), 2).core([4], 0), "users = 4: must be a user in [0, 4)"),
    (
        lambda: secagg.masked_sums(secagg.PRESETS["tiny"], {}, (ONES[0], ONES[0])),
        "len(sums) = 2: must be 1, one for each part",
    ),
    (
        lambda: secagg_active.agreed(secagg_active.PRESETS["tiny"], SESSION, 0).sealing_context({1: SEVEN}),
        "keys[1] = 'int': must be of the class KeyPair",
    ),
    (lambda: lightsecagg.draw_randomness(PRESETS["tiny"], {1: SEVEN}), f"sources[1] = 'int': {A_SOURCE}"),
    (lambda: participation_classes.participation_classes([SEVEN]), "sets = 'int': must be of the class frozenset"),
    (lambda: rationals.integers([SEVEN]), "numbers = 'int': must be of the class Fraction"),
    (
        lambda: basecagg_active.proposal_of(basecagg.PRESETS["tiny"], [SEVEN]),
        "entries[0] = 'int': must be of the class Entry",
    ),
    (
        lambda: secagg_active.user_start(SIGNED_ROUND, 0, vector([1, 2, 3]), KEY[:31], SIGNERS),
        "len(signing) = 31: must be 32 bytes",
    ),
    (lambda: KNOWN.keys_signed(-1, b""), "number = -1: must be an integer in [0, 4294967295]"),
    (lambda: KNOWN.keys_signed(0, cast(Any, "x")), "published = 'str': must be bytes"),
    (lambda: KNOWN.boxes_signed(0, -1, (0, 0, 0), b""), "user = -1: must be an integer in [0, 4294967295]"),
    (lambda: KNOWN.boxes_signed(0, 1, (0, -1, 0), b""), "upload[1] = -1: must be an integer in [0, 4294967295]"),
    (lambda: KNOWN.boxes_signed(0, 1, (0, 1, 0), cast(Any, "x")), "digests = 'str': must be bytes"),
]


@pytest.mark.requirement("ERR-01", "ERR-02")
@pytest.mark.parametrize(("call", "text"), NAMED, ids=range(len(NAMED)))
def test_an_error_names_the_argument_of_the_function_that_was_called(call: Callable[[], object], text: str) -> None:
    with pytest.raises(ParameterError, match=rf"^{re.escape(text)}$"):
        call()


@pytest.mark.requirement("RND-04")
@pytest.mark.parametrize("names", [(), ("mask",), ("noise",), ("mask", "noise", "more")])
def test_a_round_takes_exactly_its_sampled_values(names: tuple[str, ...]) -> None:
    values: dict[str, Any] = {**ROUND.randomness[0], "more": vector([1])}
    some = {name: values[name] for name in names}
    for dropouts in ({}, {"share": [0]}, {"upload": [0]}):
        with pytest.raises(ParameterError, match="randomness"):
            run_round(
                TINY,
                ROUND.updates,
                randomness={**ROUND.randomness, 0: some},
                dropouts=dropouts,
                session=bytes(16),
                round=0,
            )
    with pytest.raises(ParameterError, match="randomness"):
        CALLS["user_share"](randomness=some)
    with pytest.raises(UnknownUser, match="randomness"):
        run_round(
            TINY, ROUND.updates, randomness={**ROUND.randomness, 5: ROUND.randomness[0]}, session=bytes(16), round=0
        )


@pytest.mark.requirement("RND-04")
@pytest.mark.parametrize("name", [name for name, call in CALLS.items() if call.arguments.get("randomness") == {}])
def test_steps_that_sample_nothing_take_no_sampled_values(name: str) -> None:
    with pytest.raises(ParameterError, match=r"^randomness = .*: must be exactly \[\]$"):
        CALLS[name](randomness={"mask": vector([1, 2, 3])})


def test_an_error_has_two_thousand_characters_at_most() -> None:
    error = ParameterError("n" * 10**6, "v" * 10**6, "a" * 10**6)
    assert len(str(error)) < 2000
    assert str(ParameterError("n" * 200, 1, "a" * 1500)) == f"{'n' * 200} = 1: must be {'a' * 1500}"
