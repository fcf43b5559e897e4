"""Ellipsoids that the leader rules out are not computed: nothing changes but the time."""

import numpy as np
import pytest

import c4b
from c4b._compilation.jit import kernel
from c4b._validate import Array
from c4b.evidence.ellipsoids import Region, views
from c4b.evidence.evidence import Evidence
from c4b.evidence.pools.leading_ellipsoid import GUIDE_HEADING, PARTS, lead, lead_squares, open_guide
from c4b.evidence.pools.offset_bounds import raise_to_lower
from c4b.evidence.pools.pool_forms import form_rows, pool_forms

DIM = 21


@kernel
def raised(region: Region, pool: Array, bases: Array, offsets: Array, forms: Array, out: Array) -> None:
    """out[0, k] = the largest base + L(offset + x_k), claim after claim."""
    pool_forms(region, pool, forms)
    for c in range(len(bases)):
        raise_to_lower(region, forms, pool, bases[c], offsets[c], 0, out, c == 0)


@kernel
def write_guide(factors: Array, reach: Array, leader: int, guide: Array) -> None:
    open_guide(factors, reach, guide)
    if leader > 0:
        lead(factors, reach, guide, leader)


@kernel
def write_squares(turned: Array, along: Array, factors: Array, guide: Array, out: Array) -> None:
    lead_squares(turned, along, factors, guide, 0, out)


def guide_to(region: Region, leader: int) -> Array:
    guide = np.empty(GUIDE_HEADING + PARTS * len(region.radius))
    write_guide(region.factors, region.reach, leader, guide)
    return guide


def margins(region: Region, pool: Array, bases: Array, offsets: Array) -> Array:
    size = pool.shape[1]
    rows = form_rows(len(region.radius), DIM, True, size)
    out = np.full((1, size), np.nan)
    raised(region, pool, bases, offsets, np.full((rows, size), np.nan), out)
    return out[0]


def region_of(confidence: str, rows: int, spread: float, seed: int) -> Region:
    rng = np.random.default_rng(seed)
    rewards = (0.0, 1.0) if confidence.startswith("bounded") else None
    model = c4b.LinearModel(DIM, 0.5, 1.5, confidence=confidence, rewards=rewards)
    evidence = Evidence(model)
    features = np.c_[
        np.ones(rows), spread * rng.normal(size=(rows, DIM - 1)) * np.logspace(0, -2, DIM - 1)
    ]
    evidence.learn(features, np.clip(0.5 * features[:, 0] + 0.1 * rng.normal(size=rows), 0.0, 1.0))
    return views(evidence.flat)[0]


SETS = ["several-ridges", "constrained", "unbiased", "bounded-3"]


@pytest.mark.parametrize("confidence", SETS)
@pytest.mark.parametrize(("rows", "spread"), [(0, 1.0), (30, 0.0), (60, 1.0), (900, 30.0), (50, 1e-6)])
def test_margins_keep_their_bits_whoever_leads(confidence: str, rows: int, spread: float) -> None:
    region, rng = region_of(confidence, rows, spread, rows), np.random.default_rng(1)
    for size, scale in ((200, 1.0), (33, 1.0), (130, 1e-9), (130, 1e6), (70, 1e-160), (70, 1e150)):
        pool = rng.normal(size=(DIM, size)) * 10.0 ** rng.uniform(-3, 0, size=size) * scale
        offsets = rng.normal(size=(9, DIM)) * 10.0 ** rng.uniform(-3, 2, size=(9, 1)) * scale
        offsets[0], offsets[1] = -pool[:, 0], 0.0
        bases = rng.normal(size=9) * scale
        without = margins(region, pool, bases, offsets)
        for leader in range(0, len(region.radius), 5):
            guided = region._replace(guide=guide_to(region, leader))
            assert margins(guided, pool, bases, offsets).tobytes() == without.tobytes()


@pytest.mark.parametrize("broken", [np.nan, np.inf, 0.0])
def test_margins_keep_their_bits_where_numbers_are_broken(broken: float) -> None:
    whole, rng = region_of("several-ridges", 60, 1.0, 5), np.random.default_rng(2)
    pool, offsets, bases = rng.normal(size=(DIM, 90)), rng.normal(size=(5, DIM)), rng.normal(size=5)
    pool[3, 7], pool[4, 8] = np.nan, np.inf
    for part in ("factors", "reach", "estimate"):
        for g in (0, 3, slice(None)):
            changed = getattr(whole, part).copy()
            changed[g] = broken
            region = whole._replace(**{part: changed})
            without = margins(region, pool, bases, offsets)
            for leader in (0, 3, 11):
                guided = region._replace(guide=guide_to(region, leader))
                assert margins(guided, pool, bases, offsets).tobytes() == without.tobytes()


def test_margins_keep_their_bits_where_squares_of_the_leader_overflow() -> None:
    whole, rng = region_of("several-ridges", 60, 1.0, 5), np.random.default_rng(4)
    stack = len(whole.radius)
    steeper = np.linspace(0.0, 6.0, stack)[::-1, None] * np.linspace(0.0, 1.0, DIM)
    factors = np.logspace(-4, 8, stack)[:, None] * 10.0**-steeper  # the last are large, and flat
    pool, offsets = 1e151 * rng.normal(size=(DIM, 90)), 1e150 * rng.normal(size=(2, DIM))
    region = whole._replace(factors=factors, reach=np.full(stack, 1e-2), norm_bound=1e3)
    without = margins(region, pool, np.zeros(2), offsets)
    for leader in (0, stack // 2, stack - 1):
        guided = region._replace(guide=guide_to(region, leader))
        assert margins(guided, pool, np.zeros(2), offsets).tobytes() == without.tobytes()


@pytest.mark.parametrize("leader", [0, 7, 20])
def test_no_square_is_below_what_the_leader_says(leader: int) -> None:
    region, rng = region_of("several-ridges", 60, 1.0, 7), np.random.default_rng(3)
    turned, along = rng.normal(size=(DIM, 400)), rng.normal(size=DIM)
    turned[:, :50] = -along[:, None] * (1.0 + 1e-9 * rng.normal(size=(DIM, 50)))
    guide, sums = guide_to(region, leader), np.empty((PARTS, 400))
    write_squares(turned, along, region.factors, guide, sums)
    assert np.all(np.diff(sums, axis=0) >= 0.0)
    squares = region.factors @ (turned + along[:, None]) ** 2
    np.testing.assert_allclose(sums[-1], squares[leader], rtol=1e-13)
    least = guide[GUIDE_HEADING:].reshape(-1, PARTS) @ sums
    widths = region.reach[:, None] ** 2 * squares
    assert np.all(least <= widths)
    assert np.median(least[leader] / widths[leader]) > 1.0 - 1e-12
    assert np.median(least / widths) > 0.5  # it says something
