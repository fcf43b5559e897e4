"""Ellipsoids that contain another one are left out: nothing changes but the time."""

import numpy as np
import pytest

import c4b
from c4b._compilation.jit import kernel
from c4b._validate import Array
from c4b.evidence.bounds import interval
from c4b.evidence.ellipsoids import Region, views
from c4b.evidence.evidence import Evidence
from c4b.evidence.pools.contained_ellipsoids import innermost, innermost_size

DIM = 8


def region_after(rows: int, spread: float, seed: int) -> Region:
    model = c4b.LinearModel(DIM, 0.3, 1.5, confidence="several-ridges")
    evidence, rng = Evidence(model), np.random.default_rng(seed)
    features = np.c_[np.ones(rows), spread * rng.normal(size=(rows, DIM - 1))]
    evidence.learn(features, features[:, 0] + 0.3 * rng.normal(size=rows))
    return views(evidence.flat)[0]


@kernel
def write_innermost(region: Region, thorough: bool, space: Array, out: Array) -> int:
    """Factors, centre, radius, reach and blur of each ellipsoid into a row of ``out``; how many."""
    few = innermost(region, thorough, space)
    stack, dim = few.estimate.shape
    for g in range(stack):
        for i in range(dim):
            out[g, i], out[g, dim + i] = few.factors[g, i], few.estimate[g, i]
        out[g, 2 * dim], out[g, 2 * dim + 1] = few.radius[g], few.reach[g]
        out[g, 2 * dim + 2] = few.blur[g]
    return stack


def innermost_of(region: Region, thorough: bool) -> Region:
    stack, dim = region.estimate.shape
    space, out = np.full(innermost_size(stack, dim) + 1, 7.0), np.empty((stack, 2 * dim + 3))
    rows = out[: write_innermost(region, thorough, space[:-1], out)]
    assert space[-1] == 7.0
    parts = (np.ascontiguousarray(part) for part in np.split(rows, [dim, 2 * dim], axis=1))
    factors, estimate, rest = parts
    radius, reach, blur = rest.T.copy()
    return region._replace(factors=factors, estimate=estimate, radius=radius, reach=reach, blur=blur)


def bounds(region: Region, directions: Array) -> list[tuple[float, float]]:
    return [interval(region, v) for v in directions]


@pytest.mark.parametrize("spread", [1e-6, 0.1, 3.0])
@pytest.mark.parametrize("rows", [0, 3, 40, 3000])
@pytest.mark.parametrize("thorough", [True, False])
def test_bounds_keep_their_bits_in_every_direction(rows: int, spread: float, thorough: bool) -> None:
    whole = region_after(rows, spread, rows)
    few, rng = innermost_of(whole, thorough), np.random.default_rng(1)
    directions = rng.normal(size=(300, DIM)) * 10.0 ** rng.uniform(-6, 3, size=(300, 1))
    directions = np.r_[directions, np.eye(DIM), whole.basis, few.estimate @ whole.basis]
    assert bounds(few, directions) == bounds(whole, directions)


@pytest.mark.parametrize("thorough", [True, False])
def test_what_is_left_out_contains_what_is_kept(thorough: bool) -> None:
    whole = region_after(400, 1.0, 5)
    few = innermost_of(whole, thorough)
    assert 2 <= len(few.radius) < len(whole.radius) / 2
    kept = {each.tobytes() for each in few.estimate}
    gone = [g for g in range(len(whole.radius)) if whole.estimate[g].tobytes() not in kept]
    rng = np.random.default_rng(2)
    sphere = rng.normal(size=(2000, DIM))
    sphere /= np.linalg.norm(sphere, axis=1)[:, None]
    for g in gone:  # every such ellipsoid has all of some kept one within itself
        inside = []
        for h in range(len(few.radius)):
            points = few.estimate[h] + few.reach[h] * np.sqrt(few.factors[h]) * sphere
            squares = ((points - whole.estimate[g]) ** 2 / whole.factors[g]).sum(axis=1)
            inside.append(bool((squares <= whole.reach[g] ** 2).all()))
        assert any(inside)


def test_a_lost_or_a_small_set_stays_as_it_is() -> None:
    lost = region_after(40, 1.0, 3)
    lost.reach[:], lost.factors[:], lost.estimate[:] = np.inf, 0.0, 0.0
    for thorough in (True, False):
        assert len(innermost_of(lost, thorough).radius) == len(lost.radius)
    single = Evidence(c4b.LinearModel(DIM, 0.3, 1.5, confidence="unbiased"))
    region = views(single.flat)[0]
    assert len(innermost_of(region, True).radius) >= min(len(region.radius), 2)


def test_large_pools_decide_as_in_parts_of_them() -> None:
    """A pool of 600 leaves more ellipsoids out than one of 100: every score has the same bits."""
    rng = np.random.default_rng(4)
    gates = [c4b.Policy("reserve-c4b+", c4b.LinearModel(DIM, 0.3, 1.5), reserve=10.0) for _ in range(2)]
    features = np.c_[np.ones(60), rng.normal(size=(60, DIM - 1))]
    for gate in gates:
        gate.learn(features, features[:, 0])
    pool = np.c_[np.ones(600), 0.2 * rng.normal(size=(600, DIM - 1))]
    pool[::3, 0] = 0.5
    baseline = np.eye(DIM)[0]
    for _ in range(40):
        whole = gates[0].preview(pool, baseline).details
        parts = [gates[1].preview(pool[k : k + 100], baseline).details for k in range(0, 600, 100)]
        assert np.array_equal(whole[:4], np.hstack(parts)[:4])  # scores also say who was passed over
        for gate in gates:
            decision = gate.decide(pool[:100], baseline)
            x = baseline if decision.action is None else pool[decision.action]
            gate.observe(decision, float(x[0]))
