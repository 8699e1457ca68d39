"""The table from error classes to reject codes (spec/conventions.md, section 7; spec/adapter.md, section 5)."""

from types import MappingProxyType

from secagg_spec import errors

REJECT_CODES = MappingProxyType(
    {
        errors.ParameterError: "bad_param",
        errors.OutOfRange: "out_of_range",
        errors.NonCanonical: "noncanonical",
        errors.LengthMismatch: "length_mismatch",
        errors.DuplicateUser: "duplicate_id",
        errors.UnknownUser: "unknown_peer",
        errors.Malformed: "malformed",
        errors.WrongPhase: "wrong_phase",
        errors.Replay: "replay",
        errors.InconsistentSets: "inconsistent_sets",
        errors.BadShare: "bad_share",
        errors.TooFewSurvivors: "below_threshold",
        errors.DecryptionFailed: "bad_ciphertext",
        errors.WeakKey: "weak_key",
        errors.BadSignature: "bad_signature",
    }
)

INEXPRESSIBLE = "inexpressible"
"""What is asked cannot be said in the interface of the implementation (ADP-44)."""
OTHER_CODES = ("other", INEXPRESSIBLE)
ALL_CODES = frozenset(REJECT_CODES.values()) | frozenset(OTHER_CODES)


def reject_code(error: Exception) -> str:
    """Return the reject code for an error of the reference.

    Raises
    ------
    KeyError
        The error class is not one of `secagg_spec.errors`.
    """
    return REJECT_CODES[type(error)]
