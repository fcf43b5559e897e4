"""Streams and distributions: what is promised about the noise and the candidates."""

import numpy as np
import pytest

from c4b.study.spec.setting import Setting
from c4b.study.world import candidates, draws

N = 200_000
MOMENTS = {  # second and fourth moment of unit noise
    "gaussian": (1.0, 3.0),
    "uniform": (1.0 / 3.0, 1.0 / 5.0),
    "rademacher": (1.0, 1.0),
}


@pytest.mark.parametrize("kind", MOMENTS)
def test_noise_has_its_moments(kind: str) -> None:
    noise = draws.unit_noise(kind, draws.stream(1, 0, draws.NOISE), (N,))
    second, fourth = MOMENTS[kind]
    assert abs(noise.mean()) < 5 * np.sqrt(second / N)
    assert np.mean(noise**2) == pytest.approx(second, abs=5 * np.sqrt((fourth - second**2) / N) + 1e-12)
    assert np.mean(noise**4) == pytest.approx(fourth, rel=0.05)


def test_student_t_noise_has_unit_variance_and_heavy_tails() -> None:
    noise = draws.unit_noise("student-t", draws.stream(1, 0, draws.NOISE), (N,))
    low, high = np.quantile(noise, [0.25, 0.75])
    assert (low, high) == pytest.approx((-0.7649 / np.sqrt(3), 0.7649 / np.sqrt(3)), abs=0.01)
    assert np.abs(noise).max() > 10.0


@pytest.mark.parametrize("kind", draws.NOISES)
def test_every_noise_kind_is_bounded_as_promised(kind: str) -> None:
    noise = np.abs(draws.unit_noise(kind, draws.stream(2, 0, draws.NOISE), (1000,)))
    if kind in ("uniform", "rademacher"):
        assert noise.max() <= 1.0
    else:
        assert noise.max() > 1.0


def test_sphere_candidates_are_uniform_on_the_sphere() -> None:
    setting = Setting(rho=0.4, rounds=400, count=32)
    pools = candidates.pools(setting, candidates.raw_pools(setting, 1, 0))
    assert np.all(pools[:, 0] == 1.0)
    u = pools[:, 1:] / 0.4
    np.testing.assert_allclose(np.linalg.norm(u, axis=1), 1.0, rtol=1e-12)
    assert np.abs(u.mean(axis=(0, 2))).max() < 5 * 0.5 / np.sqrt(400 * 32)
    np.testing.assert_allclose(np.einsum("tik,tjk->ij", u, u) / (400 * 32), np.eye(4) / 4, atol=0.01)


def test_gaussian_candidates_have_unit_expected_square() -> None:
    setting = Setting(generator="gaussian", rho=0.4, rounds=400, count=32)
    g = candidates.pools(setting, candidates.raw_pools(setting, 1, 0))[:, 1:] / 0.4
    assert np.mean(np.sum(g**2, axis=1)) == pytest.approx(1.0, abs=0.04)
    assert np.mean(g**4) / np.mean(g**2) ** 2 == pytest.approx(3.0, abs=0.2)  # no other shape


@pytest.mark.parametrize("history", ["diverse", "baseline", "candidates"])
def test_history_features(history: str) -> None:
    setting = Setting(history=history, history_size=30, rho=0.4)
    pools = candidates.pools(setting, candidates.raw_pools(setting, 1, 0))
    rows = candidates.history(setting, 1, 0, pools)
    assert rows.shape == (30, 5)
    assert np.all(rows[:, 0] == 1.0)
    length = {"diverse": 1.0, "baseline": 0.0, "candidates": 0.4}[history]
    np.testing.assert_allclose(np.linalg.norm(rows[:, 1:], axis=1), length, rtol=1e-12)


def test_streams_differ_by_seed_episode_and_role() -> None:
    keys = [(1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1), (0, 1, 1), (1, 256, 0)]
    firsts = {draws.stream(*key).random() for key in keys}
    assert len(firsts) == len(keys)
    assert draws.stream(1, 0, 0).random() == draws.stream(1, 0, 0).random()


@pytest.mark.parametrize("kind", draws.NOISES)
def test_a_longer_deployment_begins_with_the_same_rounds(kind: str) -> None:
    def noise(rounds: int) -> np.ndarray:
        return draws.unit_noise(kind, draws.stream(1, 0, draws.NOISE), (rounds, 7))

    assert np.array_equal(noise(20)[:10], noise(10))
    for generator in ("sphere", "gaussian"):
        long, short = (
            candidates.raw_pools(Setting(generator=generator, rounds=rounds), 1, 0) for rounds in (20, 10)
        )
        assert np.array_equal(long[:10], short)
