"""Figure 1 of Multi-RoundSecAgg: images recovered from the sums of many rounds, under two ways to choose the users.

Each user holds one image, and its update is the gradient of one step on it (FedSGD), quantised. The server has the sums
that SecAgg reveals. Under random selection it combines them to single updates and inverts these. Under batch
partitioning no combination is a single update, so it inverts the sum over a batch: once as if it were the update of one
user, and once as the sum of T updates.

====================  ==========================================
paper                 here
====================  ==========================================
x_i                   the quantised update of a user
T                     users of a batch
D(x, y), TV           `_distance`, `_variation` (Geiping et al., eq. (4))
====================  ==========================================

Needs torch and scikit-learn, the extra ``secagg-spec[train]``.

Source: Multi-RoundSecAgg, figure 1; Geiping, Bauermeister, Dröge and Moeller, *Inverting Gradients* (2020).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from secagg_spec.arithmetic import quantizer, validate
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.crypto.entropy import SeededSource, draw_below, draw_rounding
from secagg_spec.errors import ParameterError
from secagg_spec.experiments.sums import LEAST_USERS, MODULUS, draw_log, secure_sum
from secagg_spec.learning.digits import Digits
from secagg_spec.privacy.reconstruction import (
    Combination,
    Integers,
    combination,
    drift_bound,
    mildest,
    recovered,
)
from secagg_spec.selection.batches import Parameters
from secagg_spec.selection.metrics import Log
from secagg_spec.selection.strategies import draw

CLASSES = 10
NETS = ("conv", "dense")
MOST_NUMBERS = 2**26
_SMOOTHING = 1e-5
_HIGHEST = 99.0
_ROUNDING = 1e-9
Update: TypeAlias = tuple[Tensor, ...]
Say: TypeAlias = Callable[[str], None]


@dataclass(frozen=True)
class Settings(validate.Plain):
    """N users, K of them in a round, in batches of T under batch partitioning; a net; and the server's effort.

    `rate` is the learning rate of the server's steps between rounds; with 0 the net and the updates stay the same.

    Raises
    ------
    ParameterError
        K is below 3, T below 2, or another number is outside its range.
    """

    parameters: Parameters
    rounds: int
    shown: int
    seed: int = 0
    net: str = "conv"
    width: int = 8
    rate: float = 0.0
    starts: int = 3
    steps: int = 300

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.integer("K", self.parameters.K, LEAST_USERS)
        validate.integer("T", self.parameters.T, 2)
        validate.integer("rounds", self.rounds, 1)
        validate.integer("shown", self.shown, 1, self.parameters.N)
        validate.integer("width", self.width, 1, 256)
        if self.net not in NETS:
            raise ParameterError("net", self.net, "one of " + ", ".join(NETS))
        if not validate.finite(self.rate) or not 0 <= self.rate <= 100:
            raise ParameterError("rate", self.rate, "a number in [0, 100]")

    @property
    def entropy(self) -> bytes:
        """The seed in bytes."""
        return validate.integer("seed", self.seed, 0, 2**64 - 1).to_bytes(8, "little")

    @property
    def level(self) -> int:
        """The quantiser's level: 2**20, or less if the sum of K updates would not fit."""
        return 1 << (26 - max(6, (self.parameters.K - 1).bit_length()))


@dataclass(frozen=True, eq=False)
class Played:
    """A session: the users of each sum, the sums, the updates (rounds, N, d), and the net of the round `middle`."""

    log: Log
    sums: Integers
    updates: Sequence[Integers]
    net: nn.Sequential
    middle: int

    def drift(self) -> int:
        """Return the largest difference between an entry of an update and that of the round `middle`."""
        return max(int(np.abs(each - self.updates[self.middle]).max()) for each in self.updates)

    def after(self, *users: int) -> int | None:
        """Return the number of rounds after which the sum over some users can be computed, or None."""
        found = combination(self.log, *users)
        return None if found is None else found[-1][0] + 1

    def taken(self, *users: int) -> Combination | None:
        """Return the combination that the server takes; if updates drift, the one with the smallest error."""
        return mildest(self.log, *users) if self.drift() else combination(self.log, *users)


@dataclass(frozen=True)
class Recovery:
    """For each sum in question, after how many rounds it can be computed; the error, and an upper bound for it."""

    after: tuple[int | None, ...]
    error: Fraction
    bound: Fraction


@dataclass(frozen=True, eq=False)
class Found:
    """Recovered images (n, side, side), and the similarity of the nearest one to a user's image, in decibels.

    `nearer` is the number of images of the data that are nearer to it than the user's own.
    """

    images: RealArray
    score: float
    nearer: int


@dataclass(frozen=True, eq=False)
class Row:
    """What the server has of one user's image: None if it cannot compute the sum that it needs."""

    user: int
    original: RealArray
    alone: Found | None
    as_one: Found | None
    together: Found | None


@dataclass(frozen=True, eq=False)
class Result:
    """The whole result; `data` names the images, `pool` is their number, `guess` is their mean image."""

    settings: Settings
    data: str
    pool: int
    numbers: int
    random: Recovery
    single: Recovery
    batches: Recovery
    rows: tuple[Row, ...]
    guess: RealArray


def run(settings: Settings, data: Digits, say: Say = lambda line: None) -> Result:
    """Play both sessions, and invert what the server can compute from them.

    Raises
    ------
    ParameterError
        There are fewer images than users, or more numbers than can be stored.
    """
    torch.set_num_threads(1)
    images, labels = _held(settings, data)
    net = build(settings.net, data.side, settings.width, settings.seed)
    _refuse_large(settings, net)
    p = settings.parameters
    say(f"{settings.rounds} rounds of random selection")
    free = _play(settings, Parameters(p.N, p.K, 1), "random", net, images, labels)
    say(f"{settings.rounds} rounds of batch partitioning")
    held = _play(settings, p, "uniform", net, images, labels)
    rows = tuple(_row(settings, free, held, (data, images[user]), user, say) for user in _shown(settings))
    users, batches = [(user,) for user in range(p.N)], [tuple(p.members(batch)) for batch in range(p.batches)]
    return Result(
        settings,
        data.name,
        len(data.labels),
        free.sums.shape[1],
        _recovery(settings, free, users),
        _recovery(settings, held, users),
        _recovery(settings, held, batches),
        rows,
        data.mean(),
    )


def _held(settings: Settings, data: Digits) -> tuple[RealArray, Tensor]:
    """Return the image of each user, and the digits on them."""
    N, count = settings.parameters.N, len(data.labels)
    if count < N:
        raise ParameterError("N", N, f"at most {count}, as many as there are images")
    steps = draw_below(SeededSource(settings.entropy, "images"), range(count, count - N, -1))
    chosen = draw(np.arange(count), steps)
    return data.images(chosen), torch.from_numpy(data.labels[chosen])


def _shown(settings: Settings) -> list[int]:
    """Return the users whose updates are inverted: from different batches, as long as there are enough."""
    p = settings.parameters
    order = sorted(range(p.N), key=lambda user: (user - p.members(p.batch_of(user))[0], user))
    return sorted(order[: settings.shown])


def _refuse_large(settings: Settings, net: nn.Sequential) -> None:
    kept = settings.rounds * settings.parameters.N if settings.rate else settings.parameters.N
    numbers = kept * sum(weights.numel() for weights in net.parameters())
    if numbers > MOST_NUMBERS:
        raise ParameterError("numbers of all updates", numbers, f"at most {MOST_NUMBERS}, so fewer users or rounds")


# ------------------------------------------------------------------------------------------------- the session


def build(kind: str, side: int, width: int, seed: int) -> nn.Sequential:
    """Return a net for square images: two convolutions of `width` channels, or one layer of 8 * `width` neurons."""
    torch.manual_seed(seed)
    if kind == "dense":
        layers = [nn.Flatten(), nn.Linear(side * side, 8 * width), nn.Tanh(), nn.Linear(8 * width, CLASSES)]
        return nn.Sequential(*layers).double()
    stride = 2 if side >= 16 else 1
    left = -(-side // (2 * stride))
    first, second = nn.Conv2d(1, width, 5, 2, 2), nn.Conv2d(width, width, 5, stride, 2)
    last = nn.Linear(width * left * left, CLASSES)
    return nn.Sequential(first, nn.Tanh(), second, nn.Tanh(), nn.Flatten(), last).double()


def gradient(net: nn.Sequential, images: Tensor, targets: Tensor, *, graph: bool = False) -> Update:
    """Return the gradient of the cross-entropy, summed over images (n, side, side) with targets (n, 10)."""
    loss = functional.cross_entropy(net(images[:, None]), targets, reduction="sum")
    return torch.autograd.grad(loss, list(net.parameters()), create_graph=graph)


def _play(
    settings: Settings, p: Parameters, strategy: str, net: nn.Sequential, images: RealArray, labels: Tensor
) -> Played:
    """Play a session; if there is a rate, the server trains the net."""
    log = draw_log(p, strategy, settings.rounds, settings.entropy)
    net, middle = copy.deepcopy(net), settings.rounds // 2 if settings.rate else 0
    source = SeededSource(settings.entropy, f"rounding {strategy}")
    sums: list[Integers] = []
    updates: list[Integers] = []
    kept = net
    for round, row in enumerate(log):
        if settings.rate or not updates:
            updates.append(_updates(settings, net, images, labels, source))
        sums.append(secure_sum(updates[-1][row], seed=settings.entropy, round=round))
        if round == middle:
            kept = copy.deepcopy(net)
        _step(net, np.float64(settings.rate / (p.K * settings.level)) * sums[-1])
    return Played(log, np.stack(sums), updates, kept, middle)


def _updates(
    settings: Settings, net: nn.Sequential, images: RealArray, labels: Tensor, source: SeededSource
) -> Integers:
    """Return the quantised updates of all users, integers (N, d)."""
    ring, targets = Ring(MODULUS), functional.one_hot(labels, CLASSES).double()
    rows = []
    for image, target in zip(torch.from_numpy(images), targets, strict=True):
        update = torch.cat([part.flatten() for part in gradient(net, image[None], target[None])]).numpy()
        rounding = draw_rounding(source, update.size)
        weight = settings.parameters.K
        rows.append(quantizer.quantize(update, level=settings.level, ring=ring, weight=weight, rounding=rounding))
    return ring.decode_signed(np.stack(rows))


def _step(net: nn.Sequential, change: RealArray) -> None:
    """Subtract a change from the parameters of a net."""
    with torch.no_grad():
        for weights, part in zip(net.parameters(), _parts(net, change), strict=True):
            weights.sub_(part)


def _parts(net: nn.Sequential, numbers: RealArray) -> Update:
    """Return numbers in the shapes of a net's parameters."""
    shapes = [weights.shape for weights in net.parameters()]
    ends = np.cumsum([shape.numel() for shape in shapes])
    pieces = np.split(numbers, ends[:-1])
    return tuple(torch.from_numpy(piece).reshape(shape) for piece, shape in zip(pieces, shapes, strict=True))


def _recovery(settings: Settings, played: Played, sets: Sequence[tuple[int, ...]]) -> Recovery:
    """Return the rounds and the errors of the sums over some sets of users that can be computed."""
    error, bound, drift = Fraction(0), Fraction(0), Fraction(played.drift(), settings.level)
    for users in sets:
        taken = played.taken(*users)
        if taken is not None:
            right = played.updates[played.middle][list(users)].sum(axis=0)
            off = np.abs(recovered(taken, played.sums) - right).max()
            error = max(error, Fraction(off) / settings.level)
            bound = max(bound, drift_bound(played.log, taken, drift))
    return Recovery(tuple(played.after(*users) for users in sets), error, bound)


# ----------------------------------------------------------------------------------------------- the inversion


def _row(settings: Settings, free: Played, held: Played, own: tuple[Digits, RealArray], user: int, say: Say) -> Row:
    """Return the images from a user's update, if the server has it, and from the sum over its batch."""
    say(f"images of user {user}")
    members = tuple(settings.parameters.members(settings.parameters.batch_of(user)))
    single, batch = _known(settings, free, (user,)), _known(settings, held, members)
    data, original = own
    first, second = (Inverter(settings, played.net, data.side) for played in (free, held))
    return Row(
        user,
        original,
        None if single is None else _found(first.together(single, 1), *own),
        None if batch is None else _found(second.as_one(batch, original)[None], *own),
        None if batch is None else _found(second.together(batch, len(members)), *own),
    )


def _found(images: RealArray, data: Digits, original: RealArray) -> Found:
    """Return recovered images, with their similarity to the user's own."""
    near = max(images, key=lambda image: similarity(image, original))
    nearer = data.squares(near) + _ROUNDING < np.square(near - original).sum()
    return Found(images, similarity(near, original), int(nearer.sum()))


def _known(settings: Settings, played: Played, users: tuple[int, ...]) -> Update | None:
    """Return the sum over some users as the server computes it; None if it cannot."""
    taken = played.taken(*users)
    if taken is None:
        return None
    exact = recovered(taken, played.sums)
    return _parts(played.net, np.array([float(number / settings.level) for number in exact]))


@dataclass(frozen=True, eq=False)
class Inverter:
    """Recovers images from updates; it knows the net, and `side` is the height and width of the images."""

    settings: Settings
    net: nn.Sequential
    side: int

    def together(self, update: Update, count: int) -> RealArray:
        """Return `count` images whose updates sum to an update, (count, side, side): the closest result of some starts.

        For a dense net and one image no search is needed: the image is the gradient of a neuron's weights divided by
        that of its bias.
        """
        if self.settings.net == "dense" and count == 1:
            best = int(update[1].abs().argmax())
            return quotients(update)[best : best + 1]
        labels = labels_of(update, count)
        tries = [self.searched(update, labels, start) for start in range(self.settings.starts)]
        return min(tries, key=lambda found: found[1])[0]

    def as_one(self, update: Update, original: RealArray) -> RealArray:
        """Return the image nearest to a user's that results from treating a batch's sum as that user's update.

        Every label is tried; the labels that the batch seems to have, and their mixture, from all starts. For a dense
        net, every neuron is tried. The server cannot know which try is nearest, so this is more than it can do.
        """
        if self.settings.net == "dense":
            tries = list(quotients(update))
        else:
            mixture = labels_of(update, self.settings.parameters.T).mean(dim=0, keepdim=True)
            tries = [self.searched(update, mixture, start)[0][0] for start in range(self.settings.starts)]
            for label, share in zip(torch.eye(CLASSES, dtype=torch.float64)[:, None], mixture[0], strict=True):
                starts = range(self.settings.starts if share else 1)
                tries += [self.searched(update, label, start)[0][0] for start in starts]
        return max(tries, key=lambda image: similarity(image, original))

    def searched(self, update: Update, labels: Tensor, start: int) -> tuple[RealArray, float]:
        """Return images whose update has nearly the direction of the given one, and the distance between the two."""
        generator = torch.Generator().manual_seed(start)
        shape = (len(labels), self.side, self.side)
        images = torch.rand(shape, generator=generator, dtype=torch.float64).requires_grad_()
        search = torch.optim.LBFGS(
            [images], max_iter=self.settings.steps, history_size=20, line_search_fn="strong_wolfe"
        )

        def loss() -> Tensor:
            found = gradient(self.net, images, labels, graph=True)
            value = _distance(found, update) + _SMOOTHING * _variation(images)
            (images.grad,) = torch.autograd.grad(value, [images])
            return value

        search.step(loss)  # type: ignore[no-untyped-call]
        return images.detach().clamp(0, 1).numpy(), float(loss().detach())


def quotients(update: Update) -> RealArray:
    """Return, for each neuron of a first dense layer, the gradient of its weights over its bias's, as an image."""
    weights, offsets = update[:2]
    side = round(weights.shape[1] ** 0.5)
    sound = torch.where(offsets == 0, torch.ones_like(offsets), offsets)
    return (weights / sound[:, None]).clamp(0, 1).reshape(-1, side, side).numpy()


def labels_of(update: Update, count: int) -> Tensor:
    """Return the labels that `count` images seem to have, (count, 10): each lowers the last layer's bias by 1."""
    rest, labels = update[-1].clone(), torch.zeros(count, CLASSES, dtype=torch.float64)
    for row in labels:
        lowest = int(rest.argmin())
        row[lowest] = 1
        rest[lowest] += 1
    return labels


def _distance(found: Update, wanted: Update) -> Tensor:
    """Return 1 - the cosine of the angle between two updates."""
    product = sum(((a * b).sum() for a, b in zip(found, wanted, strict=True)), torch.zeros(()))
    return 1 - product / (_length(found) * _length(wanted))


def _length(update: Update) -> Tensor:
    return sum(((part * part).sum() for part in update), torch.zeros(())).sqrt()


def _variation(images: Tensor) -> Tensor:
    """Return the mean difference of horizontally and of vertically adjacent pixels."""
    return images.diff(dim=1).abs().mean() + images.diff(dim=2).abs().mean()


# ------------------------------------------------------------------------------------------------- the measures


def similarity(image: RealArray, original: RealArray) -> float:
    """Return the peak signal-to-noise ratio of two images in [0, 1], in decibels, at most 99."""
    error = float(np.mean((image - original) ** 2))
    return min(_HIGHEST, -10 * float(np.log10(error))) if error else _HIGHEST
