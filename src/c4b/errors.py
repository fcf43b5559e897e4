"""The errors of this package.

A call that raises one of them has changed nothing. There is one exception, and its message says so:
``StoreUnavailable`` after a commit whose acknowledgement was lost.
"""

import re


class C4BError(Exception):
    """Base class of all errors of this package."""


class InvalidInput(C4BError, ValueError):
    """An argument is invalid. The message names the argument, its value and the remedy."""

    def __init__(self, argument: str, value: object, remedy: str) -> None:
        self.argument = argument
        self.remedy = remedy
        try:
            shown = repr(value)
        except Exception:  # noqa: BLE001 (a value too strange to print is no reason to hide the remedy)
            shown = f"<{type(value).__name__}>"
        if len(shown) > 120:
            shown = shown[:117] + "..."
        self.shown = shown
        super().__init__(f"{argument} = {shown}: {remedy}")

    def __reduce__(self) -> tuple[object, ...]:  # keep all three parts across processes
        return rebuild, (type(self), self.argument, self.shown, self.remedy)


def rebuild(kind: type[InvalidInput], argument: str, shown: str, remedy: str) -> InvalidInput:
    """Recreate an error from its printed value, after it was sent between processes or over a network."""
    error = kind.__new__(kind)
    Exception.__init__(error, f"{argument} = {shown}: {remedy}")
    error.argument, error.shown, error.remedy = argument, shown, remedy
    return error


class UnknownName(InvalidInput):
    """The name of a policy, confidence set or rule is not registered."""


class UnknownDecision(InvalidInput):
    """The id does not belong to any decision of this policy."""


class OutcomeClosed(InvalidInput):
    """The decision's outcome was already absorbed or declared lost and can no longer be changed."""


class ContradictoryOutcome(InvalidInput):
    """A second outcome for the same decision differs from the first."""


class LaterOutcomeKnown(InvalidInput):
    """A loss or another execution was reported after the outcome of a later decision.

    It was not declared independent of that outcome.
    """


class HistoryClosed(C4BError):
    """Historical data were given after the first decision."""


class NoSafeAction(C4BError):
    """No action is certified, not even the baseline, so the policy makes no decision."""


class GateFailed(C4BError):
    """A gate in plain Python returned an invalid decision, or raised an error in a study.

    The gate has to be fixed.
    """


class DecisionsClosed(C4BError):
    """The deployment was closed permanently: it makes no more decisions, but can still be read."""


class StateFileError(C4BError):
    """A saved policy cannot be loaded."""


class CorruptState(StateFileError):
    """The file is damaged or is not a saved policy."""


class NewerState(StateFileError):
    """The file was written by a newer version of this package."""


class DeploymentError(C4BError):
    """Base class of the errors that only deployments raise."""


class UnknownDeployment(DeploymentError):
    """The store has no deployment of this name."""


class NameTaken(DeploymentError):
    """The store already has a deployment of this name."""


class ContradictoryRequest(InvalidInput):
    """The request id was used before for a different request."""


class PayloadTooLarge(InvalidInput):
    """The input has more bytes, rows or characters than the deployment's limits allow."""


class StoreUnavailable(DeploymentError):
    """The store is unreachable, locked, full or read-only. The message says what is known."""


class JournalCorrupt(DeploymentError):
    """The journal is damaged or inconsistent and is not used. Run an audit and restore a backup."""


class EntryArchived(DeploymentError):
    """The requested entry was moved to an archive file and is no longer in the store."""


class KeyMissing(DeploymentError):
    """The deployment's entries are sealed with a key that this process does not have."""


class SchemaVersion(DeploymentError):
    """The store was written by another version of this package."""


class InvalidLog(InvalidInput):
    """A log does not match its declaration.

    The message names the file or frame, column, row and value.
    """


class LogCannotAnswer(C4BError):
    """The log is valid but cannot answer this question.

    For example, it always took the same action.
    """


class AddressUnavailable(C4BError):
    """The service cannot listen at the given host and port."""


class ServiceError(C4BError):
    """Base class of the errors that only a client of the service raises."""


class ServiceUnavailable(ServiceError):
    """The service did not answer, even after retries."""


class ServiceRefused(ServiceError):
    """The service refused the request: the token is invalid, its scope is not sufficient, ..."""


def kind(error: type[C4BError]) -> str:
    """The machine-readable name of an error class: ``UnknownDecision`` gives ``unknown-decision``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", error.__name__).lower()


def named(word: str) -> type[C4BError] | None:
    """The error class whose ``kind`` is this name, or None."""
    every = (found for found in globals().values() if isinstance(found, type))
    return next((e for e in every if issubclass(e, C4BError) and kind(e) == word), None)
