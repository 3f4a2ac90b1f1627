"""Exit codes (section 8 of the design), and which facts lead to which. Where several apply: 1 before 4 before 3."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from .agreement import Agreement, Verdict
from .files import BROKEN_STATES, UNDECIDED_STATES, Severity

if TYPE_CHECKING:
    from .scan import ScanResult


class Exit(IntEnum):
    """What a command leaves with."""

    SAME = 0
    DIFFERENT = 1
    USAGE = 2
    UNDECIDED = 3
    INCOMPLETE = 4
    INTERRUPTED = 130


class CkptError(Exception):
    """What a user can mend: one line with the path, what is wrong and what to do. `code` is the exit code."""

    code = Exit.UNDECIDED


class UsageError(CkptError):
    """The words on the command line name nothing that can be done."""

    code = Exit.USAGE


class RanksDiffer(CkptError, RuntimeError):
    """The ranks do not hold the same, or it could not be found out; `agreement` says which, and why."""

    def __init__(self, agreement: Agreement, text: str = "") -> None:
        super().__init__(text or f"{agreement.verdict.value}: {agreement.summary}")
        self.agreement = agreement
        self.code = agreement_code(agreement)

    def __reduce__(self) -> tuple[type[RanksDiffer], tuple[Agreement, str]]:
        """An exception crosses process borders (torch.multiprocessing) with its agreement."""
        return type(self), (self.agreement, str(self))


class Interrupted(CkptError):
    """The user asked to stop; what was finished is kept."""

    code = Exit.INTERRUPTED


VERDICT_CODES = {
    Verdict.AGREE: Exit.SAME,
    Verdict.DIFFER: Exit.DIFFERENT,
    Verdict.DAMAGED: Exit.DIFFERENT,
    Verdict.INCOMPLETE: Exit.INCOMPLETE,
    Verdict.UNDECIDED: Exit.UNDECIDED,
}


def agreement_code(agreement: Agreement, *, strict: bool = False) -> Exit:
    """The exit code of an agreement; with `strict` a warning turns 0 into 1."""
    code = VERDICT_CODES[agreement.verdict]
    if code is Exit.SAME and strict and agreement.warnings:
        return Exit.DIFFERENT
    return code


def scan_code(result: ScanResult, *, strict: bool = False) -> Exit:
    """The exit code of a scan: damage and broken claims, then what could not be read, then warnings if `strict`."""
    states = {file.state for file in result.files}
    severities = {finding.severity for finding in result.findings}
    if states & BROKEN_STATES or Severity.ERROR in severities:
        return Exit.DIFFERENT
    if any(claim.holds is False for file in result.files for claim in file.claims):
        return Exit.DIFFERENT
    if states & UNDECIDED_STATES:
        return Exit.UNDECIDED
    if strict and (Severity.WARNING in severities or result.warnings):
        return Exit.DIFFERENT
    return Exit.SAME
