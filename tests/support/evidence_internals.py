"""Into the evidence: writeable views of its arrays by name, for tests that read or break them."""

from types import SimpleNamespace

import c4b
from c4b.evidence import ellipsoids as statistics


def inside(evidence: c4b.Evidence) -> SimpleNamespace:
    """inverse (G, d, d), estimate (G, d), radius, ridges (G,), gram (d, d), moment (d,), tally (3,)."""
    region, data, _terms = statistics.views(evidence.flat)
    return SimpleNamespace(**region._asdict(), **data._asdict())
