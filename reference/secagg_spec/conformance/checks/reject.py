"""The codes that each kind of broken rule accepts: the table of spec/adapter.md, section 5."""

MALFORMED = frozenset({"malformed"})
BAD_PARAM = frozenset({"bad_param", "out_of_range"})
NONCANONICAL = frozenset({"noncanonical", "out_of_range"})
LENGTH = frozenset({"length_mismatch", "malformed"})
TOO_FEW = frozenset({"below_threshold", "inconsistent_sets"})
TWICE = frozenset({"duplicate_id", "inconsistent_sets"})
OUTSIDE = frozenset({"unknown_peer", "inconsistent_sets", "out_of_range"})
BAD_SHARE = frozenset({"bad_share"})
BAD_SIGNATURE = frozenset({"bad_signature"})
NOT_64_EACH = LENGTH | BAD_SIGNATURE
BAD_CIPHERTEXT = frozenset({"bad_ciphertext"})
NOT_FINITE = frozenset({"out_of_range"})
BAD_RANDOMNESS = frozenset({"malformed", "bad_param", "length_mismatch"})
NOTHING_LEFT = BAD_RANDOMNESS | {"wrong_phase"}
NO_ELEMENTS = BAD_PARAM | LENGTH

# keys and messages
KEY_LENGTH = LENGTH | {"bad_param"}
WEAK_KEY = frozenset({"weak_key"})
EQUAL_KEYS = frozenset({"bad_param", "duplicate_id"})
PEER = frozenset({"unknown_peer", "out_of_range", "bad_param", "duplicate_id"})
FIELD = frozenset({"malformed", "out_of_range", "length_mismatch", "bad_param"})
ANOTHER_TYPE = OUT_OF_TURN = ELSEWHERE = frozenset({"malformed", "wrong_phase"})
BAD_VECTOR = frozenset({"malformed", "noncanonical", "out_of_range", "length_mismatch"})

# steps
AGAIN = frozenset({"replay", "wrong_phase"})
NOT_NOW = AGAIN | MALFORMED
NOTHING_CAME = frozenset({"wrong_phase", "malformed", "below_threshold", "inconsistent_sets"})
STRANGER = frozenset({"unknown_peer", "inconsistent_sets", "malformed", "wrong_phase"})
SECOND = frozenset({"replay", "duplicate_id"})
NOT_ALLOWED = frozenset({"unknown_peer", "inconsistent_sets"})
OUT_OF_RANGE = frozenset({"bad_param", "out_of_range", "unknown_peer", "malformed"})

# buffers and epochs
WRONG_BUFFER = frozenset({"inconsistent_sets", "out_of_range"})
ANOTHER_COUNT = frozenset({"inconsistent_sets", "below_threshold", "length_mismatch", "malformed"})
NOT_ASCENDING = frozenset({"inconsistent_sets"})
OUTSIDER = frozenset({"malformed", "unknown_peer", "out_of_range"})
BAD_FORM = BAD_VECTOR | {"inconsistent_sets"}
UNFIT = WRONG_BUFFER | {"wrong_phase"}
FEW = frozenset({"below_threshold", "wrong_phase"})
