"""The ledger's own arithmetic, kernel by kernel."""

import math

import numpy as np
import pytest

import c4b
from c4b.evidence.absorption import empty
from c4b.ledger import books
from c4b.ledger.books import Certificate, LedgerKind, Tally
from c4b.ledger.ledger_kernels import Execution, amend, charge

MODEL = c4b.LinearModel(2, 0.1, 1.0)
NOTHING = np.empty(0)
ACCOUNT = books.Account(0.25, 0.5, 0.0, Certificate.JOINT, LedgerKind.BANK, 0.0)
SEPARATE = ACCOUNT._replace(certificate=Certificate.SEPARATE)
REVALUE = SEPARATE._replace(kind=LedgerKind.PREFIX)


def test_opening_states_reserve_and_nothing_else() -> None:
    ledger, account = books.views(books.opening(ACCOUNT, 2, 1))
    assert account == ACCOUNT
    assert ledger.bank.tolist() == ledger.kept_bank.tolist() == [0.5]
    assert not np.any(ledger.prefix)
    assert not np.any(ledger.sums)
    assert not np.any(ledger.kept_prefix)


def test_without_a_gate_there_is_no_bank() -> None:
    ledger, _ = books.views(books.opening(ACCOUNT._replace(kind=LedgerKind.NONE), 2, 0))
    assert math.isnan(ledger.bank[0])


def test_charge_books_the_executed_contrast() -> None:
    # alpha = 1/4, z = x - 3/4 b. Candidate (1, 2) against (1, 0): (1/4, 2). Baseline (2, 0): (1/2, 0)
    flat = books.opening(ACCOUNT, 2, 1)
    ledger, account = books.views(flat)
    charge(
        ledger, account, 0.75, Execution(np.array([1.0, 2.0]), np.array([1.0, 0.0]), False, np.nan), False
    )
    assert ledger.bank[0] == 0.75
    assert ledger.prefix.tolist() == [0.25, 2.0]
    charge(
        ledger, account, 0.875, Execution(np.array([2.0, 0.0]), np.array([2.0, 0.0]), True, np.nan), False
    )
    assert ledger.prefix.tolist() == [0.75, 2.0]
    assert not ledger.sums.any()  # kept for revalue only
    assert ledger.kept_bank.tolist() == [0.5]  # the remembered start never moves


@pytest.mark.parametrize("terms", [ACCOUNT, SEPARATE, REVALUE])
def test_amending_back_restores_prefix_and_sums(terms: books.Account) -> None:
    """There and back leaves Z and the sums, and never leaves more bank than before."""
    flat = books.opening(terms, 2, 0)
    evidence = empty(MODEL)
    ledger, account = books.views(flat)
    x, b, other = np.array([1.0, 0.5]), np.array([1.0, 0.0]), np.array([0.5, 0.25])
    charge(ledger, account, 0.5, Execution(x, b, False, np.nan), False)
    before = flat.copy()
    amend(flat, evidence, NOTHING, x, False, other, False, b, np.nan, 0)
    assert ledger.prefix.tolist() == [-0.25, 0.25]
    amend(flat, evidence, NOTHING, other, False, x, False, b, np.nan, 0)
    np.testing.assert_array_equal(flat[books.BANK + 1 :], before[books.BANK + 1 :])
    assert flat[books.BANK] <= before[books.BANK]


def test_amending_to_the_same_action_is_free() -> None:
    flat = books.opening(ACCOUNT, 2, 1)
    ledger, account = books.views(flat)
    x, b = np.array([1.0, 0.5]), np.array([1.0, 0.0])
    charge(ledger, account, 0.5, Execution(x, b, False, np.nan), False)
    before = flat.copy()
    amend(flat, empty(MODEL), NOTHING, x, False, x, False, b, np.nan, 0)
    np.testing.assert_array_equal(flat, before)


@pytest.mark.parametrize("terms", [ACCOUNT, REVALUE])
def test_amending_charges_the_misspecification_of_what_was_executed(terms: books.Account) -> None:
    """Baseline decided, candidate executed: every claim that spans the round pays (1 + c) epsilon."""
    x, b, epsilon = np.array([1.0, 0.5]), np.array([1.0, 0.0]), 0.125
    account = terms._replace(tolerance=epsilon)
    found = []
    for decided in (x, b):
        flat = books.opening(account, 2, 4)
        ledger, _ = books.views(flat)
        charge(ledger, account, 0.5, Execution(decided, b, decided is b, np.nan), False)
        amend(flat, empty(MODEL), NOTHING, decided, decided is b, x, False, b, np.nan, 0)
        found.append((ledger.kept_bank[0], ledger.tally[Tally.SLACK], ledger.prefix.tolist()))
    assert found[0] == found[1]
    assert found[0][:2] == (0.5 - 1.75 * epsilon, 1.75 * epsilon)


def test_revalue_keeps_the_sums_of_what_was_played_displaced_and_fallen_back_to() -> None:
    flat = books.opening(REVALUE, 2, 0)
    ledger, account = books.views(flat)
    charge(
        ledger, account, 0.75, Execution(np.array([1.0, 2.0]), np.array([1.0, 0.0]), False, np.nan), False
    )
    charge(
        ledger, account, 0.875, Execution(np.array([2.0, 0.0]), np.array([2.0, 0.0]), True, np.nan), False
    )
    assert ledger.sums.tolist() == [[1.0, 2.0], [1.0, 0.0], [2.0, 0.0]]
