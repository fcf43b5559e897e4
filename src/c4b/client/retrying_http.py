"""HTTP requests that are repeated while there is no answer. Failures raise the library's errors."""

from __future__ import annotations

import random
import time
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel

from c4b import errors

A = TypeVar("A", bound=BaseModel)

_RETRY_STATUSES = (408, 429, 502, 503, 504)
_LONGEST_PAUSE = 5.0
"""Largest number of seconds between two attempts."""


class RetryingHttp:
    """A connection to one service. Requests must be safe to repeat."""

    def __init__(self, url: str, token: str | None, timeout: float, attempts: int) -> None:
        self._attempts = attempts
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        try:
            self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout, trust_env=False)
        except (httpx.InvalidURL, TypeError) as error:
            raise errors.InvalidInput("url", url, "must be like http://127.0.0.1:8000") from error
        if self._http.base_url.scheme not in ("http", "https"):
            raise errors.InvalidInput("url", url, "must be like http://127.0.0.1:8000")

    @property
    def address(self) -> str:
        """Address of the service, without the user name or password that it may contain."""
        return str(self._http.base_url.copy_with(userinfo=b"")).rstrip("/")

    def close(self) -> None:
        self._http.close()

    def call(self, schema: type[A], method: str, path: str, **more: Any) -> A:
        """Send a request and return its response as ``schema``."""
        return schema.model_validate_json(self.send(method, path, **more).content)

    def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Send a request, and repeat it while that may help."""
        reason, sent = "", False
        for attempt in range(self._attempts):
            pause = min(0.1 * 2.0**attempt, _LONGEST_PAUSE) * random.uniform(0.5, 1.0)
            try:
                response = self._http.request(method, path, **more)
            except httpx.TransportError as error:
                reason = f"{type(error).__name__}: {error}"
                sent = sent or not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            except (TypeError, ValueError) as error:  # NaN is not JSON, nor is a set
                raise errors.InvalidInput("request", path, f"cannot be sent as JSON ({error})") from error
            else:
                if response.is_success:
                    return response
                if response.status_code not in _RETRY_STATUSES:
                    raise _error(response)
                reason, sent = str(_error(response)), True
                seconds = response.headers.get("Retry-After", "")
                pause = max(pause, float(seconds) if seconds.isdigit() else 0.0)
            if attempt + 1 < self._attempts:
                time.sleep(min(pause, _LONGEST_PAUSE))
        if not sent:
            raise errors.ServiceUnavailable(
                f"{self._http.base_url}: nobody answers at this address, no connection in "
                f"{self._attempts} attempts ({reason}); nothing was sent"
            )
        raise errors.ServiceUnavailable(
            f"{self._http.base_url}: no answer in {self._attempts} attempts ({reason}); it may have been "
            "carried out: repeat the call with the same request_id to learn"
        )


def _error(response: httpx.Response) -> errors.C4BError:
    """Return the library's error that a problem+json response describes."""
    try:
        problem: dict[str, Any] = response.json()
        kind, detail = str(problem["type"]), str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        return errors.ServiceRefused(f"HTTP {response.status_code}: {response.text[:200]}")
    error = errors.named(kind.removeprefix("urn:c4b:problem:"))
    if error is None:
        return errors.ServiceRefused(f"HTTP {response.status_code}: {detail}")
    if not issubclass(error, errors.InvalidInput):
        return error(detail)
    first: dict[str, Any] = (problem.get("errors") or [{}])[0]
    argument = problem.get("argument", first.get("argument", "body"))
    remedy = problem.get("remedy", first.get("remedy", detail))
    value = problem.get("value", first.get("value", "..."))
    return errors.rebuild(error, str(argument), str(value), str(remedy))
