"""How mutants are classified: the part of the text that each breaks, its effect, and the origin of the idea."""

PROTOCOLS = {
    **dict.fromkeys(
        ("MOD", "MDS", "QNT", "MSG", "RND", "ERR", "PRG", "KEY", "SEA", "SHM", "SIG", "MSK", "SES"), "conventions"
    ),
    "LSA": "lightsecagg",
    "SAG": "secagg",
    "BSA": "basecagg",
    "BAA": "basa",
    "ABE": "attributes",
    "HSA": "heterosag",
    "MRA": "multi-round",
    "STL": "fedbuff",
    "FBF": "fedbuff",
    "EXP": "experiments",
    "PLN": "planning",
    "FLW": "flower",
    "TRC": "traces",
    "ADP": "adapter",
    "CNF": "kit",
    "CLM": "ledger",
}
"""The page of the text, or the part of the project, that a clause with this prefix belongs to."""
KINDS = {
    "sum": "the aggregate, a value that goes into it, or another result is wrong",
    "privacy": "somebody may learn what is hidden from him, a secret is badly drawn, or an audit overstates privacy",
    "acceptance": "something is accepted that has to be refused, and what follows is wrong or undefined",
    "refusal": "something right is refused or cannot go on, or a refusal names the wrong reason or the wrong party",
    "form": "what parties or an adapter write is in other bytes, in another order or derived in another way",
}
"""The effects of mutants. If anybody learns more, the kind is `privacy`, even if a refusal is missing."""
SOURCES = {
    "clause left out": "what the clause asks for is not done, or not looked at",
    "clause in part": "it is done in some of the cases only, or for some of what it names",
    "clause too strict": "more is asked for than the clause does",
    "off by one": "a bound, a count, a degree or an index",
    "order": "two things change places, or the entries of a list do",
    "sign": "of a term, a number or a comparison",
    "arithmetic": "overflow, precision, rounding: which one stands behind the colon",
    "wrong term": "something is left out, put in twice, or taken from the wrong place",
    "other rule": "another usual or likely rule, which stands behind the colon",
    "encoding": "the spelling of numbers, texts, lists and keys",
    "field not bound": "what stands behind the colon does not enter a key, a hash, a seal or a signature",
    "silent repair": "what has to be refused is cut, filled, sorted, reduced, moved to a bound or passed over",
    "used twice": "a key, a seed, a mask, a share, a message or an answer serves again",
    "kept too long": "a state outlives its end",
    "forgotten": "a state is lost before its end",
    "trace of a refusal": "a refused call changes something",
    "weak draw": "what is drawn is constant, biased or too short: which one stands behind the colon",
    "wrong reason": "a refusal has another code, or blames another party",
    "paper": "so in a paper, or left open there: a claim that is not confirmed, or a page and its row on the papers",
    "seen in FedML 0.9.6": "a check, behind the colon, that the release fails: `targets/fedml/expectations.toml`",
    "seen in Flower 1.41.0": "a check, behind the colon, that the release fails: `targets/flower/expectations.toml`",
}
"""The origins of mutants. After a colon, `source` gives details about the single mutant."""
DETAILED = ("arithmetic", "other rule", "field not bound", "weak draw", "paper", "seen in")
"""The sources that need details after the colon; the last entry is a prefix."""


def protocol(clause: str) -> str:
    """Return the page of the text, or the part of the project, that a clause such as ``"LSA-09"`` belongs to."""
    return PROTOCOLS[clause.partition("-")[0]]


def parted(source: str) -> tuple[str, str]:
    """Split a source at its colon into the source and the details, which may be empty."""
    head, _, detail = source.partition(": ")
    return head, detail
