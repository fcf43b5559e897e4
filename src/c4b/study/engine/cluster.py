"""Chunks on a Dask distributed cluster, through the standard executor interface.

A chunk depends on nothing but the study and its episodes, so the scheduler runs a chunk again if it was
lost with its worker.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Executor
from typing import Any, TypeVar, cast

from c4b.errors import C4BError, InvalidInput
from c4b.study.spec import identity
from c4b.study.spec.plan import Study

T = TypeVar("T")
SECONDS_FOR_A_WORKER = 10.0
"""How long to wait for the first worker of a scheduler that has none."""
SAME_CODE = "install this very version of reserve-c4b and of NumPy on every worker"


class ClusterLost(C4BError):
    """The scheduler went away, or its workers keep dying."""


def connect(address: str, study: Study | None = None) -> Executor:
    """An executor on the scheduler at ``address``, whose workers have this very code, and that of the
    study's own gates and sets; closing it closes the connection."""
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
        _check_workers(client, address, study)
    except BaseException:
        client.close()
        raise
    return cast(Executor, _ClosingExecutor(client))


def _check_workers(client: Any, address: str, study: Study | None) -> None:
    """Raise ``InvalidInput`` if a worker has other code, which would make other rows, or none; or if
    there is no worker."""
    try:
        client.wait_for_workers(1, timeout=SECONDS_FOR_A_WORKER)
    except TimeoutError as error:
        remedy = f"has no worker; start one, for example by: dask worker {address}"
        raise InvalidInput("cluster", address, remedy) from error
    _check(client, address, SAME_CODE, identity.code)
    if study is None:
        return
    remedy = (
        "install the packages that offer the study's gates and sets (entry points c4b.gates, c4b.sets) "
        "on every worker"
    )
    _check(client, address, remedy, identity.python_code, study)


def _check(client: Any, address: str, remedy: str, digest: Any, *arguments: Any) -> None:
    try:
        digests = client.run(digest, *arguments)
    except Exception as error:  # whatever a worker without the package raises
        raise InvalidInput("cluster", address, f"{remedy} ({type(error).__name__}: {error})") from error
    for worker, theirs in digests.items():
        if theirs != digest(*arguments):
            raise InvalidInput("cluster", address, f"worker {worker} runs other code; {remedy}")


class _ClosingExecutor:
    """Dask's executor, with the connection closed at the end."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.inner = client.get_executor(pure=False, retries=10)

    def submit(self, function: Any, *arguments: Any) -> Any:
        return self.inner.submit(on_same_code, identity.code(), function, *arguments)

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


def on_same_code(code: str, function: Callable[..., T], *arguments: Any) -> T:
    """On a worker, which may have come after the others were checked."""
    if identity.code() != code:
        raise InvalidInput("cluster", code, f"a worker that joined later runs other code; {SAME_CODE}")
    return function(*arguments)
