"""The faults of the ledger, of the index of a paper, or of a proof."""

from __future__ import annotations


class LedgerError(ValueError):
    """The ledger or a proof is unusable; the message is one line that names the file, the entry and the fault."""


class BrokenFile(LedgerError):
    """A file of the ledger or of the index is absent or not TOML."""


class BrokenEntry(LedgerError):
    """An entry breaks the schema: a field is missing, unknown, or has a value that is not allowed."""


class DuplicateClaim(LedgerError):
    """Two entries have the same id, or two items of an index the same name."""


class UnknownClause(LedgerError):
    """An entry names a clause that the text does not have."""


class DeadLink(LedgerError):
    """An entry, or an item of an index, names a claim, a clause or a project file that does not exist."""


class MissingEvidence(LedgerError):
    """An entry names neither an existing proof nor the reason why there is none."""


class UnknownClaim(LedgerError):
    """No claim, or no paper, has this name."""


class Incomplete(LedgerError):
    """An index and the ledger, or an index and the text of its paper, have different items."""


class BrokenProof(LedgerError):
    """A file in ``proofs/`` is not a proof: it cannot be read, or it lacks a part."""


class PackageMissing(LedgerError):
    """A proof needs a package that is not installed."""


class ProofFailed(Exception):
    """A statement that a proof checks does not hold; the message says which and where."""
