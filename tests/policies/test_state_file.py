"""save -> load -> continue, bit for bit; a damaged file is always told from a good one."""

import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

import c4b
from c4b.policies import state_file
from support.evidence_internals import as_first_stored, inside
from support.oracle_comparison import ALL_CONFIDENCES, METHODS, history
from support.random_stream import random_stream


def halfway(
    name: str, absorb: str = "in-order", seed: int = 0, confidence: str = "mixture"
) -> tuple[c4b.Policy, list[c4b.Decision]]:
    """A policy with absorbed, pending, reported-but-stalled, forgotten and re-executed decisions."""
    rng = np.random.default_rng(seed)
    theta, stream = random_stream(rng, 3, 12, max_candidates=4)
    model = c4b.LinearModel(3, 0.1, 1.0, confidence=confidence)
    policy = c4b.Policy(name, model, 0.1, 0.5, absorb=absorb)
    policy.learn(*history(rng, theta, 40, 0.1))
    decisions = policy.decide_many(stream)
    for n in (0, 1, 5, 7):
        policy.observe(decisions[n].id, float(rng.normal()))
    policy.forget(decisions[6].id, independent=True)
    policy.executed(decisions[8].id, stream[8][1] + 0.1)
    policy.executed(decisions[9].id)
    return policy, decisions


def proceed(policy: c4b.Policy, decisions: list[c4b.Decision], seed: int = 1) -> list[object]:
    """Report what is open, decide on; everything that can be seen along the way."""
    rng = np.random.default_rng(seed)
    _, stream = random_stream(rng, 3, 15, max_candidates=4)
    seen: list[object] = [policy.pending]
    for n in (11, 3, 2, 4, 8):
        policy.observe(decisions[n].id, float(rng.normal()))
        seen.append(policy.evidence.flat.tobytes())
    policy.executed(decisions[10].id, independent=True)
    for pair in stream:
        decision = policy.decide(*pair)
        seen += [repr(decision[:9]), decision.details.tobytes()]
        policy.observe(decision.id, float(rng.normal()))
        seen += [policy.evidence.flat.tobytes(), policy.gate.ledger.tobytes(), policy.pending]
    return seen


@pytest.mark.parametrize("confidence", c4b.evidence.CONFIDENCES)
def test_so_it_is_with_every_set_and_checkpoints(confidence: str, tmp_path: Path) -> None:
    policy, decisions = halfway("checkpoints", confidence=confidence)
    policy.save(tmp_path / "state")
    loaded = c4b.Policy.load(tmp_path / "state")
    assert proceed(loaded, decisions) == proceed(policy, decisions)


@pytest.mark.parametrize("absorb", ["in-order", "on-arrival"])
@pytest.mark.parametrize("name", METHODS)
def test_save_load_continue_is_bit_identical(name: str, absorb: str, tmp_path: Path) -> None:
    policy, decisions = halfway(name, absorb)
    policy.save(tmp_path / "state")
    loaded = c4b.Policy.load(tmp_path / "state")
    assert proceed(loaded, decisions) == proceed(policy, decisions)


def test_outcomes_closed_before_saving_are_still_recognised(tmp_path: Path) -> None:
    policy = c4b.Policy("refresh", c4b.LinearModel(1, 0.1, 1.0))
    first, second = policy.decide_many([([], [1.0])] * 2)
    policy.observe(first.id, 0.5)
    policy.forget(second.id)
    policy.save(tmp_path / "state")
    loaded = c4b.Policy.load(tmp_path / "state")
    loaded.observe(first.id, 0.5)
    loaded.forget(second.id)
    assert loaded.evidence.count == 1
    with pytest.raises(c4b.errors.ContradictoryOutcome):
        loaded.observe(first.id, 0.6)
    with pytest.raises(c4b.errors.OutcomeClosed):
        loaded.observe(second.id, 0.5)


def test_a_fresh_policy_and_an_unregistered_composition_survive(tmp_path: Path) -> None:
    own = c4b.Composition("own", "joint", "refresh", "propose", "for this test")
    policy = c4b.Policy(own, c4b.LinearModel(2, 0.1, 1.0), 0.3, 2.0, False, "on-arrival")
    policy.save(tmp_path / "state")
    loaded = c4b.Policy.load(str(tmp_path / "state"))
    assert loaded.composition == own
    assert loaded.model == policy.model
    assert (loaded.alpha, loaded.reserve, loaded.baseline_nonnegative, loaded.absorb) == (
        0.3,
        2.0,
        False,
        "on-arrival",
    )


def same(a: c4b.Policy, b: c4b.Policy) -> bool:
    one, two = a.state()[1], b.state()[1]
    return a.state()[0] == b.state()[0] and all(one[k].tobytes() == two[k].tobytes() for k in one)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> tuple[c4b.Policy, bytes]:
    policy = halfway("refresh")[0]
    path = tmp_path_factory.mktemp("good") / "state"
    policy.save(path)
    return policy, path.read_bytes()


@pytest.mark.slow
def test_flipped_bytes_are_found(good: tuple[c4b.Policy, bytes], tmp_path: Path) -> None:
    """Every byte of the zip's own structure, sampled bytes of the bulk, several flips each: the file
    loads identically (a byte nobody reads) or is called corrupt. Never anything else."""
    policy, content = good
    bulk = np.random.default_rng(0).integers(len(content), size=400).tolist()
    marks = [
        n for mark in (b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06") for n in _positions(content, mark)
    ]
    structure = [n + k for n in marks for k in range(60) if n + k < len(content)]
    path, identical = tmp_path / "state", 0
    for place in sorted({*bulk, *structure}):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(content)
            damaged[place] ^= flip
            path.write_bytes(damaged)
            try:
                loaded = c4b.Policy.load(path)
            except c4b.errors.CorruptState:
                continue
            else:
                assert same(loaded, policy)
                identical += 1
    assert identical < 0.5 * 3 * len({*bulk, *structure})


def _positions(content: bytes, mark: bytes) -> list[int]:
    return [n for n in range(len(content)) if content.startswith(mark, n)]


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_truncated_files_are_corrupt(
    good: tuple[c4b.Policy, bytes], share: float, tmp_path: Path
) -> None:
    path = tmp_path / "state"
    path.write_bytes(good[1][: int(share * len(good[1]))])
    with pytest.raises(c4b.errors.CorruptState):
        c4b.Policy.load(path)


@pytest.mark.parametrize("content", [b"", b"hello", b"\x93NUMPY", b"PK\x03\x04", b"\x80\x04}\x94."])
def test_other_files_are_corrupt(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(content)
    with pytest.raises(c4b.errors.CorruptState, match="not a saved policy") as caught:
        c4b.Policy.load(path)
    assert str(path) in str(caught.value)
    assert "pickle" not in str(caught.value)


def test_another_npy_or_npz_file_is_corrupt(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(3))
    np.savez(tmp_path / "b.npz", header=np.frombuffer(b'{"format": "other"}', dtype=np.uint8))
    np.savez(tmp_path / "c.npz", header=np.frombuffer(b"[1]", dtype=np.uint8))
    for name in ("a.npy", "b.npz", "c.npz"):
        with pytest.raises(c4b.errors.CorruptState):
            c4b.Policy.load(tmp_path / name)


def rewritten(policy: c4b.Policy, path: Path, **changes: object) -> None:
    """The same file with header fields changed, well formed and without repairing the digest."""
    policy.save(path)
    with np.load(path) as archive:
        arrays = {key: archive[key] for key in archive.files}
    header = json.loads(arrays.pop("header").tobytes()) | changes
    with open(path, "wb") as file:
        np.savez(file, header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **arrays)


def test_a_file_that_an_older_numpy_added_an_array_to(tmp_path: Path) -> None:
    """It took an option that it did not know for an array."""
    policy = halfway("refresh")[0]
    policy.save(tmp_path / "state")
    with np.load(tmp_path / "state") as archive:
        arrays = {key: archive[key] for key in archive.files}
    assert "allow_pickle" not in arrays
    np.savez(tmp_path / "stray.npz", **arrays)
    with (
        zipfile.ZipFile(tmp_path / "stray.npz", "a") as archive,
        archive.open("allow_pickle.npy", "w") as file,
    ):
        np.save(file, np.array(False))
    with np.load(tmp_path / "stray.npz") as archive:
        assert "allow_pickle" in archive.files
    assert c4b.Policy.load(tmp_path / "stray.npz").bank == policy.bank


def test_a_newer_version_says_upgrade(tmp_path: Path) -> None:
    rewritten(halfway("refresh")[0], tmp_path / "state", version=state_file.VERSION + 1)
    with pytest.raises(c4b.errors.NewerState, match="upgrade"):
        c4b.Policy.load(tmp_path / "state")


@pytest.mark.parametrize("changes", [{"rounds": 3}, {"token": "x"}, {"settings": {}}, {"version": "x"}])
def test_an_edited_header_is_corrupt(changes: dict[str, object], tmp_path: Path) -> None:
    rewritten(halfway("refresh")[0], tmp_path / "state", **changes)
    with pytest.raises(c4b.errors.CorruptState):
        c4b.Policy.load(tmp_path / "state")


def test_a_missing_file_is_simply_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        c4b.Policy.load(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match=f"{tmp_path}/folder'$"):
        halfway("refresh")[0].save(tmp_path / "folder" / "state")


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fails before or at the exchange: the old file stays whole and no draft is left."""
    policy, decisions = halfway("refresh")
    path = tmp_path / "state"
    policy.save(path)
    before = path.read_bytes()
    policy.observe(decisions[2].id, 0.5)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="No space"):
        policy.save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["state"]
    policy.save(path)
    assert path.read_bytes() != before


def test_saving_does_not_change_the_policy(good: tuple[c4b.Policy, bytes], tmp_path: Path) -> None:
    policy = good[0]
    for name in ("a", "b"):
        policy.save(tmp_path / name)
    assert same(c4b.Policy.load(tmp_path / "a"), c4b.Policy.load(tmp_path / "b"))


@pytest.mark.parametrize("confidence", ALL_CONFIDENCES)
def test_a_state_without_bounds_of_rounding_errors_is_continued(confidence: str) -> None:
    """Earlier versions stored none: they are computed when the state is read, and decisions agree."""
    policy, _ = halfway("refresh", confidence=confidence)
    arrays = {key: array.copy() for key, array in policy.gate.snapshot().items()}
    arrays["evidence"] = as_first_stored(policy.evidence)
    other, _ = halfway("refresh", confidence=confidence)
    other.gate.restore(arrays)
    for name in ("gram", "moment", "ridges"):
        np.testing.assert_array_equal(
            getattr(inside(other.evidence), name), getattr(inside(policy.evidence), name)
        )
    assert other.evidence.count == policy.evidence.count
    for v in np.random.default_rng(0).normal(size=(5, 3)):
        assert other.evidence.lower(v) == pytest.approx(policy.evidence.lower(v), abs=1e-8)
