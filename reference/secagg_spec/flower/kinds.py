"""The protocols that carry a round, each with what its users and its server start with, and what a user stores.

The steps are those of the reference: nothing here computes a mask, a share or a sum. The tree of a stored state holds
what the state holds, so that what a step forgets is not stored after it either.

Source: spec/conventions.md, section 13 (the column *needed*); spec/flower.md, section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from secagg_spec.arithmetic.validate import UintArray, frozen
from secagg_spec.crypto.entropy import Source
from secagg_spec.crypto.keys import Roster
from secagg_spec.crypto.sealing import SealedChannel
from secagg_spec.errors import ParameterError
from secagg_spec.flower import plan as plans
from secagg_spec.flower.plan import Plan
from secagg_spec.protocols import steps
from secagg_spec.protocols.codec import vector_bytes, vector_from_bytes
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.secagg import active as secagg_active
from secagg_spec.protocols.secagg import round as secagg

_LATER: UintArray = frozen(np.zeros(0, dtype=np.uint64))
"""The update of a user that has none yet: `Kind.filled` gives it one before the step that uses it."""


@dataclass(frozen=True)
class Private:
    """The private keys of a user that are older than its state: for sealing in this round, and for signing."""

    sealing: bytes = field(default=b"", repr=False)
    signing: bytes = field(default=b"", repr=False)


class Kind:
    """A protocol as a round uses it.

    `table` holds its steps, and `masking` is the phase whose step uses the update. `joining` are the sizes of the keys
    that users send before there is a plan, by their names in the plan. The methods are for checked arguments: a plan
    that was read, a user of it, and a phase of the table. `parameters` refuses the numbers of a plan, if they are not
    allowed.
    """

    table: steps.Table
    masking: str
    joining: Mapping[str, int] = MappingProxyType({})

    @property
    def seals(self) -> bool:
        """Whether users have a sealing key in the plan."""
        return "sealing" in self.joining

    @property
    def signs(self) -> bool:
        """Whether users have a verification key in the plan."""
        return "verification" in self.joining

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases in which users take a step, in order."""
        return tuple(dict.fromkeys(step.phase for step in self.table if step.role is steps.Role.USER))

    def step(self, phase: str, role: steps.Role) -> steps.Step[Any]:
        """Return the step of a phase and a role."""
        return next(step for step in self.table if (step.phase, step.role) == (phase, role))

    def parameters(self, plan: Plan) -> Any:
        """Return the parameters of a plan; raise `ParameterError` if they are not allowed."""
        raise NotImplementedError

    def enough(self, plan: Plan) -> int:
        """Return the smallest number of users in a sum."""
        raise NotImplementedError

    def shared(self, plan: Plan) -> int:
        """Return how many elements the N shares of a mask have; the numbers of the plan need not be allowed ones."""
        return 0

    def user(self, plan: Plan, user: int, private: Private) -> Any:
        """Return the state of a user before its first step; the update comes later."""
        raise NotImplementedError

    def server(self, plan: Plan) -> Any:
        """Return the state of the server before its first step."""
        raise NotImplementedError

    def sampled(self, plan: Plan, step: steps.Step[Any], source: Source) -> steps.Randomness:
        """Draw the sampled values of a step of a user."""
        raise NotImplementedError

    def filled(self, plan: Plan, state: Any, update: UintArray) -> Any:
        """Return the state of a user with its update; raise as the start of a user does for an update."""
        raise NotImplementedError

    def store(self, state: Any) -> Any:
        """Return the state of a user as a tree for `packing.pack`."""
        raise NotImplementedError

    def restore(self, plan: Plan, user: int, private: Private, tree: Any) -> Any:
        """Return the state that `store` wrote."""
        raise NotImplementedError

    def total(self, state: Any) -> tuple[UintArray, tuple[int, ...]]:
        """Return the sum that the server has at the end, and the users in it."""
        raise NotImplementedError


def _numbers(kind: Any, plan: Plan) -> Any:
    try:
        return kind(**plan.numbers)
    except TypeError:
        raise ParameterError("numbers", sorted(plan.numbers), f"the parameters of {plan.protocol}") from None


def _drawn(step: steps.Step[Any], all_values: Mapping[int, steps.Randomness]) -> steps.Randomness:
    return {name: all_values[0][name] for name in step.randomness}


# ---------------------------------------------------------------------------------------------- SecAgg and SecAgg+


class SecAgg(Kind):
    """SecAgg and SecAgg+, semi-honest."""

    table = secagg.TABLE
    masking = "masked_input"

    def parameters(self, plan: Plan) -> secagg.Parameters:
        numbers: secagg.Parameters = _numbers(secagg.Parameters, plan)
        return numbers

    def enough(self, plan: Plan) -> int:
        return self.parameters(plan).enough

    def _round(self, plan: Plan) -> secagg.Round:
        numbers = self.parameters(plan)
        return secagg.Round(numbers, numbers.graph(plan.order), plan.session, plan.round)

    def user(self, plan: Plan, user: int, private: Private) -> Any:
        return secagg.UserState(self._round(plan), user, _LATER)

    def server(self, plan: Plan) -> Any:
        return secagg.server_start(self._round(plan))

    def sampled(self, plan: Plan, step: steps.Step[Any], source: Source) -> steps.Randomness:
        return _drawn(step, secagg.draw_randomness(self.parameters(plan), {0: source})) if step.randomness else {}

    def filled(self, plan: Plan, state: Any, update: UintArray) -> Any:
        return replace(state, update=secagg.user_start(state.round, state.user, update).update)

    def store(self, state: Any) -> Any:
        private = state.private
        return {
            "phase": state.phase,
            "private": None if private is None else [private.sealing, private.masking],
            "peers": [[user, pair.sealing, pair.masking] for user, pair in state.peers.items()],
            "sealing_secrets": [list(each) for each in state.sealing_secrets.items()],
            "mask_keys": [[*place, key] for place, key in state.mask_keys.items()],
            "self_keys": [list(each) for each in state.self_keys.items()],
            "held": [[user, shares.key, shares.seed] for user, shares in state.held.items()],
        }

    def restore(self, plan: Plan, user: int, private: Private, tree: Any) -> Any:
        return secagg.UserState(
            self._round(plan),
            user,
            _LATER,
            tree["phase"],
            None if tree["private"] is None else secagg.KeyPair(*tree["private"]),
            {peer: secagg.KeyPair(*pair) for peer, *pair in tree["peers"]},
            dict(tree["sealing_secrets"]),
            {(segment, peer): key for segment, peer, key in tree["mask_keys"]},
            dict(tree["self_keys"]),
            {owner: secagg.Shares(*shares) for owner, *shares in tree["held"]},
        )

    def total(self, state: Any) -> tuple[UintArray, tuple[int, ...]]:
        return state.aggregate, state.survivors


class SecAggActive(SecAgg):
    """SecAgg, active profile."""

    table = secagg_active.TABLE
    joining = MappingProxyType({"verification": 32})

    def parameters(self, plan: Plan) -> secagg_active.Parameters:
        numbers: secagg_active.Parameters = _numbers(secagg_active.Parameters, plan)
        return numbers

    def _round(self, plan: Plan) -> secagg_active.AttemptRound:
        if plan.order != tuple(range(plan.N)):
            raise ParameterError("order", plan.order, "that of the roster in the active profile")
        return secagg_active.agreed(self.parameters(plan), plan.session, plan.round)

    def user(self, plan: Plan, user: int, private: Private) -> Any:
        return secagg_active.UserState(super().user(plan, user, private), Roster(plan.verification), private.signing)

    def server(self, plan: Plan) -> Any:
        return secagg_active.server_start(self._round(plan), Roster(plan.verification))

    def filled(self, plan: Plan, state: Any, update: UintArray) -> Any:
        return replace(state, base=super().filled(plan, state.base, update))

    def store(self, state: Any) -> Any:
        request = state.request
        asked = None if request is None else [list(request.survivors), list(request.dropped)]
        return {"base": super().store(state.base), "request": asked}

    def restore(self, plan: Plan, user: int, private: Private, tree: Any) -> Any:
        base = super().restore(plan, user, private, tree["base"])
        header = steps.Endpoint(plan.session, plan.round, steps.SERVER).header(user)
        request = None if tree["request"] is None else secagg.UnmaskRequest(*header, *map(tuple, tree["request"]))
        return secagg_active.UserState(base, Roster(plan.verification), private.signing, request)

    def total(self, state: Any) -> tuple[UintArray, tuple[int, ...]]:
        return super().total(state.base)


# ------------------------------------------------------------------------------------------------------ LightSecAgg


class LightSecAgg(Kind):
    """LightSecAgg, semi-honest, with sealed channels."""

    table = lightsecagg.TABLE
    masking = "upload"
    joining = MappingProxyType({"sealing": 32})

    def parameters(self, plan: Plan) -> lightsecagg.Parameters:
        numbers: lightsecagg.Parameters = _numbers(lightsecagg.Parameters, plan)
        return numbers

    def enough(self, plan: Plan) -> int:
        numbers = self.parameters(plan)
        return max(numbers.U, numbers.T + 2)

    def shared(self, plan: Plan) -> int:
        pieces = max(1, plan.numbers.get("U", 0) - plan.numbers.get("T", 0))
        return plan.N * -(-plan.d // pieces)

    def user(self, plan: Plan, user: int, private: Private) -> Any:
        context = lightsecagg.sealing_context(self.parameters(plan), plan.session, plan.round)
        channel = SealedChannel(context, private.sealing, _sealing(plan))
        return lightsecagg.UserState(self.parameters(plan), plan.session, plan.round, user, _LATER, channel)

    def server(self, plan: Plan) -> Any:
        _sealing(plan)
        return lightsecagg.server_start(self.parameters(plan), plan.session, plan.round)

    def sampled(self, plan: Plan, step: steps.Step[Any], source: Source) -> steps.Randomness:
        return _drawn(step, lightsecagg.draw_randomness(self.parameters(plan), {0: source})) if step.randomness else {}

    def filled(self, plan: Plan, state: Any, update: UintArray) -> Any:
        return replace(state, update=frozen(plan.ring.check("update", update, (plan.d,))))

    def store(self, state: Any) -> Any:
        mask = None if state.mask is None else vector_bytes(state.mask)
        held = [[user, vector_bytes(share)] for user, share in state.held.items()]
        return {"phase": state.phase, "mask": mask, "held": held}

    def restore(self, plan: Plan, user: int, private: Private, tree: Any) -> Any:
        mask = None if tree["mask"] is None else frozen(vector_from_bytes(tree["mask"]))
        held = {owner: frozen(vector_from_bytes(share)) for owner, share in tree["held"]}
        start = LightSecAgg.user(self, plan, user, private)
        return replace(start, phase=tree["phase"], mask=mask, held=held)

    def total(self, state: Any) -> tuple[UintArray, tuple[int, ...]]:
        return state.aggregate, state.surviving


class LightSecAggActive(LightSecAgg):
    """LightSecAgg, active profile."""

    table = lightsecagg_active.TABLE
    joining = MappingProxyType({"sealing": 32, "verification": 32, "signature": 64})

    def parameters(self, plan: Plan) -> lightsecagg_active.Parameters:
        numbers: lightsecagg_active.Parameters = _numbers(lightsecagg_active.Parameters, plan)
        return numbers

    def user(self, plan: Plan, user: int, private: Private) -> Any:
        keys = lightsecagg_active.PrivateKeys(private.sealing, private.signing)
        zeros = plan.ring.zeros(plan.d)
        roster = _public(plan)
        start = lightsecagg_active.user_start(
            self.parameters(plan), plan.session, plan.round, user, zeros, keys, roster
        )
        return replace(start, base=replace(start.base, update=_LATER))

    def server(self, plan: Plan) -> Any:
        return lightsecagg_active.server_start(self.parameters(plan), plan.session, plan.round, _public(plan))

    def filled(self, plan: Plan, state: Any, update: UintArray) -> Any:
        return replace(state, base=super().filled(plan, state.base, update))

    def store(self, state: Any) -> Any:
        announced = None if state.announced is None else list(state.announced.users)
        return {"base": super().store(state.base), "announced": announced}

    def restore(self, plan: Plan, user: int, private: Private, tree: Any) -> Any:
        start, base = self.user(plan, user, private), tree["base"]
        inner = LightSecAgg.restore(self, plan, user, private, base)
        header = steps.Endpoint(plan.session, plan.round, steps.SERVER).header(user)
        users = tree["announced"]
        announced = None if users is None else lightsecagg.SurvivingSet(*header, tuple(users))
        return replace(start, base=replace(inner, channel=start.base.channel), announced=announced)

    def total(self, state: Any) -> tuple[UintArray, tuple[int, ...]]:
        return super().total(state.base)


def _sealing(plan: Plan) -> Roster:
    if len(plan.sealing) != plan.N:
        raise ParameterError("sealing", len(plan.sealing), f"N = {plan.N} keys")
    return Roster(plan.sealing)


def _public(plan: Plan) -> lightsecagg_active.PublicKeys:
    return lightsecagg_active.PublicKeys(_sealing(plan), Roster(plan.verification))


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        plans.SECAGG: SecAgg(),
        plans.SECAGG_ACTIVE: SecAggActive(),
        plans.LIGHTSECAGG: LightSecAgg(),
        plans.LIGHTSECAGG_ACTIVE: LightSecAggActive(),
    }
)
