"""The input of a decision, as one immutable value.

``Policy``, ``Deployment``, the service and the simulator all pass a ``Round`` to the gate. A new input is
a new field here, not a new argument in each of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from c4b import _array_likes, _validate
from c4b._validate import LARGEST
from c4b.errors import InvalidInput
from c4b.policies.rounds.slates import Slates, checked_slates, features_of, has_items

_new = tuple.__new__
"""Makes a ``Round`` of all its fields in the least time."""
BASELINE_MEAN = "baseline_mean"
"""The input that a gate must ask for (``needs``) before a round may carry it."""


class Round(NamedTuple):
    """The input of one decision: the candidates, the baseline and what is known about them.

    >>> Round([[1.0, 0.5], [1.0, -0.5]], [1.0, 0.0], labels=("red", "blue")).labels
    ('red', 'blue')
    """

    candidates: Any
    """Features of the candidates, shape (K, d), K >= 0; or of slates, shape (K, m, d)."""
    baseline: Any
    """Features of the incumbent's action, shape (d,); of a slate of n items, shape (n, d)."""
    baseline_mean: float | None = None
    """The *known* mean reward of the baseline, or None. An average of past rewards is not a known
    mean."""
    labels: Sequence[str] | None = None
    """Names of the candidates for display, one each."""
    request_id: str | None = None
    """The caller's id for this request. A deployment makes one decision for it, even if it is
    repeated."""
    context: Any = None
    """Plain JSON that a deployment stores with the decision."""
    argument: str = ""
    """Prefix of argument names in error messages, for example ``"rounds[3]."``."""
    items: Slates | None = None
    """The items of slates. A checked round has their sums as ``candidates`` and ``baseline``."""


def as_rounds(rounds: object) -> list[Round]:
    """Return a list of ``Round`` from rounds or pairs (candidates, baseline), as in ``decide_many``."""
    remedy = "must be a sequence of c4b.Round, or of pairs (candidates, baseline)"
    listed = []
    for n, given in enumerate(_validate.several("rounds", rounds, remedy)):
        if isinstance(given, Round):
            listed.append(given._replace(argument=f"rounds[{n}]."))
            continue
        try:
            candidates, baseline = given
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"rounds[{n}]", given, remedy) from error
        fields = (candidates, baseline, None, None, None, None, f"rounds[{n}].", None)
        listed.append(_new(Round, fields))
    return listed


def checked_round(given: Round, dim: int, needs: Collection[str] = ()) -> Round:
    """Return the round with arrays in the form that kernels need, or raise ``InvalidInput``.

    The gate checks that the numbers are finite, because it reads every feature anyway. A deployment
    checks ``request_id`` and ``context``.
    """
    candidates, baseline, mean, labels, request_id, context, prefix, items = given
    if items is None and _validate.is_ready(candidates, baseline, dim):  # in most calls
        pass
    elif items is not None or has_items(candidates, baseline):
        offered, incumbent = items or (candidates, baseline)
        items = checked_slates(prefix, offered, incumbent, dim)
        candidates, baseline = features_of(items.candidates), features_of(items.baseline)
    else:
        _array_likes.check_names(prefix, candidates, baseline)
        candidates = _validate.pool(f"{prefix}candidates", _array_likes.dense(candidates), dim)
        baseline = _validate.point(f"{prefix}baseline", _array_likes.dense_row(baseline), dim)
    if mean is not None or needs:
        mean = checked_mean(prefix, mean, needs)
    if labels is not None:
        labels = _checked_labels(prefix, _array_likes.texts(labels), len(candidates))
    return _new(Round, (candidates, baseline, mean, labels, request_id, context, prefix, items))


def checked_mean(prefix: str, mean: object, needs: Collection[str]) -> float | None:
    """Return the given baseline mean of a policy with these needs, or raise ``InvalidInput``."""
    if BASELINE_MEAN in needs:
        if type(mean) is float and -LARGEST <= mean <= LARGEST:  # in most calls
            return mean
        remedy = "must be the baseline's known mean: this policy needs it"
        known = _validate.number(f"{prefix}{BASELINE_MEAN}", mean, remedy)
        return _validate.reward(f"{prefix}{BASELINE_MEAN}", known)
    if mean is not None:
        remedy = "is not used by this policy; leave it out"
        raise InvalidInput(f"{prefix}{BASELINE_MEAN}", mean, remedy)
    return None


def _checked_labels(prefix: str, labels: object, count: int) -> tuple[str, ...] | None:
    if labels is None:
        return None
    remedy = f"must be a sequence of {count} texts, one for each candidate"
    if isinstance(labels, str | bytes) or not isinstance(labels, Sequence) or len(labels) != count:
        raise InvalidInput(f"{prefix}labels", labels, remedy)
    if not all(isinstance(label, str) for label in labels):
        raise InvalidInput(f"{prefix}labels", labels, remedy)
    return tuple(labels)
