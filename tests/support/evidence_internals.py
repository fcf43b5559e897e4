"""Into the evidence: writeable views of its arrays by name, for tests that read or break them."""

from types import SimpleNamespace

import numpy as np

import c4b
from c4b.evidence import ellipsoids as statistics
from support.oracle_sets import Array


def inside(evidence: c4b.Evidence) -> SimpleNamespace:
    """Every array of ``Region`` and ``Data`` by its name."""
    region, data, _terms = statistics.views(evidence.flat)
    return SimpleNamespace(**region._asdict(), **data._asdict())


def inverses(evidence: c4b.Evidence) -> Array:
    """(G, d, d) V_g^-1, whatever the set keeps."""
    region = evidence.region
    if not region.spectral:
        return region.inverse.copy()
    return np.asarray(np.einsum("ki,gk,kj->gij", region.basis, region.factors, region.basis))


def centres(evidence: c4b.Evidence) -> Array:
    """(G, d) theta_hat_g in the coordinates of the features."""
    region = evidence.region
    return region.estimate @ region.basis if region.spectral else region.estimate.copy()


def as_first_stored(evidence: c4b.Evidence) -> Array:
    """The flat vector as the first version stored it: G inverses, no bounds of rounding errors."""
    region, data, _terms = statistics.views(evidence.flat)
    parts = (evidence.flat[: statistics.HEADING], inverses(evidence), centres(evidence), region.radius)
    sums = (data.ridges, data.gram, data.moment, data.tally, data.extra)
    return np.concatenate([part.ravel() for part in (*parts, *sums)])
