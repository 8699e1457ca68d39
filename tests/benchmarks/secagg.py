"""SecAgg beside Flower's SecAgg+, and a whole round beside its streams."""

from __future__ import annotations

from functools import partial

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from tests.benchmarks.record import Aim, Benchmark, Sides, counted, peak, processor
from tests.benchmarks.released import Program

from secagg_spec.arithmetic import shamir
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.crypto.caches import forget
from secagg_spec.crypto.entropy import SeededSource, draw_coefficients, draw_elements
from secagg_spec.crypto.prg import stream
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.secagg.round import MaskedInput, Parameters, mask_update, run_round
from secagg_spec.protocols.steps import SERVER, run_synchronous

FLOWER_MASKS = """
import numpy as np
from flwr.common.secure_aggregation.ndarrays_arithmetic import parameters_addition, parameters_mod
from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen
d, neighbours = map(int, sys.argv[2:4])
update = [np.zeros(d, dtype=np.int64)]

def mask():
    total = update
    for i in range(neighbours + 1):
        total = parameters_addition(total, pseudo_rand_gen(bytes([i]) * 32, 2**32, [(d,)]))
    return parameters_mod(total, 2**32)

serve({"mask": mask})
"""
FLOWER_SHARES = """
from flwr.common.secure_aggregation.crypto.shamir import combine_shares, create_shares
t, n = map(int, sys.argv[2:4])
serve({"share": lambda: combine_shares(create_shares(bytes(range(32)), t, n)[:t])})
"""


def masking(d: int, neighbours: int) -> Sides:
    """Mask an update modulo 2^32 with a self mask and the streams of the neighbours."""
    ring = Ring(2**32)
    update = draw_elements(SeededSource(b"bench", "update"), ring, (d,))

    def ours() -> None:
        pairwise = ((peer, stream(bytes([peer]) * 32, ring, d)) for peer in range(1, neighbours + 1))
        mask_update(ring, 0, update, stream(bytes(32), ring, d), pairwise)

    flower = Program("flower", FLOWER_MASKS, d, neighbours)
    return Sides(partial(flower.seconds, "mask"), processor(ours), flower.close)


def beside_the_stream(R: int, d: int, neighbours: int) -> Sides:
    """Mask an update by streams, and generate their bytes alone."""
    ring, keys = Ring(R), [bytes([at]) * 32 for at in range(neighbours + 1)]
    update, piece = ring.zeros(d), 2**16
    zeros, buffer = bytes(4 * piece), bytearray(4 * piece + 15)

    def masked() -> None:
        own, *pairwise = (stream(key, ring, d) for key in keys)
        mask_update(ring, 0, update, own, enumerate(pairwise, start=1))

    def generated() -> None:
        for key in keys:
            cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
            for at in range(0, d, piece):
                cipher.update_into(memoryview(zeros)[: 4 * min(piece, d - at)], buffer)

    return Sides(processor(masked), processor(generated))


def sharing(t: int, n: int) -> Sides:
    """Share a secret of 32 bytes and put it together again."""
    coefficients = draw_coefficients(SeededSource(b"bench", "coefficients"), t - 1)
    secret, users = bytes(range(32)), tuple(range(n))

    def ours() -> None:
        shares = shamir.share(secret, coefficients, users)
        assert shamir.reconstruct(t, users[:t], shares[:t]) == secret

    flower = Program("flower", FLOWER_SHARES, t, n)
    return Sides(partial(flower.seconds, "share"), processor(ours), flower.close)


def whole_round(N: int, D: int, T: int, t: int, d: int, dropped: int) -> Sides:
    """Run a round on the complete graph, and expand the streams of its users and of its server alone."""
    p = Parameters(R=2**32, N=N, D=D, T=T, t=t, k=N - 1, d=d)
    randomness = secagg.draw_randomness(p, _sources(N))
    updates = draw_elements(SeededSource(b"bench", "updates"), p.ring, (N, d))
    left = N - dropped
    streams = left * N + left + dropped * left

    def round() -> None:
        run_round(
            p,
            updates,
            randomness=randomness,
            dropouts={"masked_input": list(range(dropped))},
            session=bytes(16),
            round=0,
        )

    def expanded() -> None:
        for number in range(streams):
            for _ in stream(number.to_bytes(32, "little"), p.ring, d):
                pass

    return Sides(processor(round, forget), processor(expanded))


def _sources(N: int) -> dict[int, SeededSource]:
    return {user: SeededSource(b"bench", f"user {user}") for user in range(N)}


def memory_of_the_server(N: int, D: int, T: int, t: int, k: int, d: int, inputs: int) -> Sides:
    """Add masked inputs up, and count what is held above the inbox, in vectors of d elements."""
    p = Parameters(R=2**32, N=N, D=D, T=T, t=t, k=k, d=d)
    network = secagg.open_round(p, p.ring.zeros(N * d).reshape(N, -1), session=bytes(16), round=0)
    network.table = network.table[:4]
    run_synchronous(network, {}, secagg.draw_randomness(p, _sources(N)))
    state, zeros = network.states[SERVER], p.ring.zeros(d)
    session, graph = state.round.session, state.round.graph
    inbox = [
        MaskedInput(session, 0, user, SERVER, tuple(sorted(graph.neighbours(user))), zeros) for user in range(inputs)
    ]
    return Sides(peak(lambda: secagg.server_masked_input.take(state, inbox, randomness={})), counted(zeros.nbytes))


MOVED = (
    "AES gives 128 KiB of a stream in 18 microseconds here. To add them to as much of a sum, all of it in the "
    "second cache, takes 4 more: 1.22 times, before Python has called anything. Four streams are read in turn in "
    "pieces of 128 KiB; other sizes, from 64 to 512 KiB, and 1, 2 or 8 streams were slower."
)
REJECTED = (
    "The largest word of each piece has to be found twice, once to reject words and once to check elements (2 times 2 "
    "microseconds), and words that pass 2^32 to be counted (5): 1.75 times."
)
BENCHMARKS = (
    Benchmark(
        id="secagg-masking",
        what="Flower 1.41.0 masks an update",
        beside="the reference masks it",
        sizes={"d": 10**6, "neighbours": 100},
        tiny={"d": 10, "neighbours": 2},
        sides=masking,
        aim=Aim("at least", 3),
    ),
    *(
        Benchmark(
            id=f"secagg-masks-{name}",
            what=f"an update is masked modulo {words}, keys of streams given",
            beside="the key streams alone are generated, into one buffer",
            sizes={"R": R, "d": 10**6, "neighbours": 100},
            tiny={"R": R, "d": 10, "neighbours": 2},
            sides=beside_the_stream,
            withdrawn=reason,
            turns=7,
        )
        for name, words, R, reason in (
            ("ring", "2^32", 2**32, f"At most 1.2 times. {MOVED}"),
            ("prime", "2^32 - 5", 2**32 - 5, f"At most 1.9 times. {MOVED} {REJECTED}"),
        )
    ),
    Benchmark(
        id="secagg-sharing",
        what="Flower 1.41.0 shares 32 bytes and puts them together",
        beside="the reference does",
        sizes={"t": 51, "n": 100},
        tiny={"t": 2, "n": 3},
        sides=sharing,
        aim=Aim("at least", 50),
    ),
    Benchmark(
        id="secagg-round",
        what="a whole round, in which some users drop out",
        beside="its streams alone are expanded",
        sizes={"N": 100, "D": 30, "T": 33, "t": 51, "d": 100_000, "dropped": 10},
        tiny={"N": 10, "D": 3, "T": 3, "t": 6, "d": 10, "dropped": 1},
        sides=whole_round,
        aim=Aim("at most", 20, of="what"),
        turns=3,
        warm=False,
    ),
    Benchmark(
        id="secagg-server-memory",
        what="what the server holds while it adds the inputs up, above its inbox",
        beside="one input",
        sizes={"N": 100, "D": 30, "T": 10, "t": 16, "k": 30, "d": 100_000, "inputs": 90},
        tiny={"N": 10, "D": 3, "T": 2, "t": 4, "k": 6, "d": 10, "inputs": 9},
        sides=memory_of_the_server,
        measures="memory",
        turns=1,
    ),
)
