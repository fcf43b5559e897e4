"""The errors of this package.

A call that raises one of them has changed nothing. There is one exception, and its message says so: a
``StoreUnavailable`` after a commit whose acknowledgement was lost.
"""

import re


class C4BError(Exception):
    """Base class of all errors of this package."""


class InvalidInput(C4BError, ValueError):
    """An argument that cannot be used; the message names it, its value and the remedy."""

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
    """Make an error again from its printed value, after it crossed a process or a network."""
    error = kind.__new__(kind)
    Exception.__init__(error, f"{argument} = {shown}: {remedy}")
    error.argument, error.shown, error.remedy = argument, shown, remedy
    return error


class UnknownName(InvalidInput):
    """A policy, confidence choice or rule that is not registered."""


class UnknownDecision(InvalidInput):
    """An id that does not belong to any decision of this policy."""


class OutcomeClosed(InvalidInput):
    """The decision's outcome was absorbed or forgotten already and can no longer be changed."""


class ContradictoryOutcome(InvalidInput):
    """A second outcome for one decision that differs from the first."""


class LaterOutcomeKnown(InvalidInput):
    """A loss or another execution was reported after the outcome of a later decision and was not declared
    independent of it."""


class HistoryClosed(C4BError):
    """Historical data was given after the first decision."""


class NoSafeAction(C4BError):
    """No action, not even the baseline, is certified, so the policy decides nothing."""


class GateFailed(C4BError):
    """A gate in plain Python returned something that is not a valid decision, or raised an error in a
    study; its author has to fix it."""


class DecisionsClosed(C4BError):
    """The deployment was closed for good: it makes no more decisions, but can be read."""


class StateFileError(C4BError):
    """A saved policy that cannot be loaded."""


class CorruptState(StateFileError):
    """The file is damaged or is not a saved policy."""


class NewerState(StateFileError):
    """The file was written by a newer version of this package."""


class DeploymentError(C4BError):
    """Base of the errors that only deployments raise."""


class UnknownDeployment(DeploymentError):
    """The store has no deployment of this name."""


class NameTaken(DeploymentError):
    """The store already has a deployment of this name."""


class ContradictoryRequest(InvalidInput):
    """A request id that was used before, for something else."""


class PayloadTooLarge(InvalidInput):
    """More bytes, rows or characters than the deployment's limits allow."""


class StoreUnavailable(DeploymentError):
    """The store cannot be reached, is locked, full or read-only; the message says what is known."""


class JournalCorrupt(DeploymentError):
    """The journal is damaged or inconsistent and is not used. Run an audit; restore a backup."""


class EntryArchived(DeploymentError):
    """The requested entry is in an archive file and no longer in the store."""


class KeyMissing(DeploymentError):
    """The deployment's entries are sealed with a key that this process does not have."""


class SchemaVersion(DeploymentError):
    """The store was written by another version of this package."""


class InvalidLog(InvalidInput):
    """A log that cannot be read as declared; the message names file or frame, column, row and value."""


class LogCannotAnswer(C4BError):
    """A valid log that cannot answer this question, e.g. because it always took the same action."""


class AddressUnavailable(C4BError):
    """The service cannot listen at the host and port it was given."""


class ServiceError(C4BError):
    """Base of the errors that only a client of the service raises."""


class ServiceUnavailable(ServiceError):
    """The service did not answer, even after retries."""


class ServiceRefused(ServiceError):
    """The service refused the request: no valid token, a scope that does not suffice, ..."""


def kind(error: type[C4BError]) -> str:
    """The machine-readable name of an error: UnknownDecision is unknown-decision."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", error.__name__).lower()


def named(word: str) -> type[C4BError] | None:
    """The error that ``kind`` gives this name, if there is one."""
    every = (found for found in globals().values() if isinstance(found, type))
    return next((e for e in every if issubclass(e, C4BError) and kind(e) == word), None)
