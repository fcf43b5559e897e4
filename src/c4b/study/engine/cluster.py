"""Chunks on a Dask distributed cluster, through the standard executor interface.

A chunk is a pure function of the study and its span, so a chunk lost with its worker is simply run
again by the scheduler.
"""

from __future__ import annotations

from concurrent.futures import CancelledError, Executor
from typing import Any, cast

from c4b.errors import C4BError, InvalidInput
from c4b.study.spec import identity


class ClusterLost(C4BError):
    """The scheduler went away, or its workers keep dying."""


def connect(address: str) -> Executor:
    """An executor on the scheduler at ``address``; closing it closes the connection."""
    try:
        import distributed  # noqa: PLC0415 (an optional extra)
    except ImportError as error:
        raise InvalidInput(
            "cluster", address, "needs the extra: pip install 'reserve-c4b[cluster]'"
        ) from error
    try:
        dask: Any = distributed
        client = dask.Client(address, timeout="5s", set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise InvalidInput("cluster", address, f"no Dask scheduler answers there ({error})") from error
    try:
        _check_workers(client, address)
    except BaseException:
        client.close()
        raise
    return cast(Executor, _ClosingExecutor(client))


def _check_workers(client: Any, address: str) -> None:
    """Other code on a worker would give other rows, or none."""
    remedy = "install this very version of reserve-c4b and of NumPy on every worker"
    try:
        codes = client.run(identity.code)
    except Exception as error:  # whatever a worker without the package raises
        raise InvalidInput("cluster", address, f"{remedy} ({type(error).__name__}: {error})") from error
    for worker, code in codes.items():
        if code != identity.code():
            raise InvalidInput("cluster", address, f"worker {worker} runs other code; {remedy}")


class _ClosingExecutor:
    """Dask's executor, with the connection closed at the end."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.inner = client.get_executor(pure=False, retries=10)

    def submit(self, function: Any, *arguments: Any) -> Any:
        return self.inner.submit(function, *arguments)

    def __enter__(self) -> _ClosingExecutor:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self.inner.shutdown(wait=False)
        self.client.close()
        dask_says = type(error).__module__.startswith("distributed.")
        if isinstance(error, CancelledError) or dask_says:
            reason = str(error) or "it cancelled the work"
            raise ClusterLost(
                f"the cluster failed ({reason.splitlines()[0]}); finished chunks are kept: when it is "
                "back, the same command goes on from here"
            ) from error
