"""What past users who are like the present one say about a film: a small collaborative filter.

Everything is fixed from the past ratings: how lenient each past user was, what is left for each film, and
which films each of them knows. A user of the rounds was never seen before; past users count more for him
if they share his gender, occupation or age, and if they know the films that were offered to him so far.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from c4b._validate import Array

SHRINK = 5.0
"""Ratings of the mean that every past user and every film has in addition."""
SHRINK_SIMILAR = 15.0
"""Ratings of the film's own effect that every film has in addition, for the similar users."""
YEARS, OTHER_GENDER, SAME_OCCUPATION, KNOWS_THE_FILMS = 15.0, 0.6, 1.5, 0.5
AT_ONCE = 2000


class People(NamedTuple):
    """Demographics of some users, in their order."""

    age: Array
    gender: NDArray[np.str_]
    occupation: NDArray[np.str_]

    @classmethod
    def of(cls, users: pl.DataFrame, ids: NDArray[np.int64]) -> People:
        rows = pl.DataFrame({"user_id": ids}).join(users, on="user_id", how="left", maintain_order="left")
        return cls(
            rows["age"].to_numpy().astype(float),
            rows["gender"].to_numpy().astype(str),
            rows["occupation"].to_numpy().astype(str),
        )


class SimilarUsers:
    """Made of past ratings: columns ``user_id``, ``place`` (of the film) and ``rating``."""

    def __init__(self, past: pl.DataFrame, users: pl.DataFrame, films: int) -> None:
        ids, user = np.unique(past["user_id"].to_numpy(), return_inverse=True)
        film, rating = past["place"].to_numpy(), past["rating"].to_numpy().astype(float)
        lenient, self.effect = _effects(user, film, rating - rating.mean(), films)
        self._people = People.of(users, ids)
        self._said, self._knows = np.zeros((len(ids), films)), np.zeros((len(ids), films))
        self._said[user, film] = rating - rating.mean() - lenient[user]
        self._knows[user, film] = 1.0
        rarity = np.log((1.0 + len(ids)) / (1.0 + self._knows.sum(axis=0)))
        length = np.sqrt((self._knows * rarity**2).sum(axis=1) + 20.0)
        self._taste = self._knows * rarity / length[:, None]

    def say(self, people: People, visitors: NDArray[np.int64], films: NDArray[np.int64]) -> Array:
        """For each row of films (n, K), its user and who that is: stars above the mean, (n, K). What
        was offered to a user in earlier rows says what he knows; whether he liked it is not looked at."""
        said, knows = np.empty(films.shape), _Known(self._knows.shape[1])
        for start in range(0, len(films), AT_ONCE):
            rows = slice(start, start + AT_ONCE)
            shown = films[rows]
            known = knows.after(visitors[rows], shown)
            weights = self._weights(People(*(column[rows] for column in people)), known)
            stars = np.take_along_axis(weights @ self._said, shown, axis=1)
            count = np.take_along_axis(weights @ self._knows, shown, axis=1)
            said[rows] = (stars + SHRINK_SIMILAR * self.effect[shown]) / (count + SHRINK_SIMILAR)
        return said

    def _weights(self, people: People, known: Array) -> Array:
        """Of each past user for each row, 1 on average over the past users. known: films, (n, films)."""
        own = self._people
        common = known @ self._taste.T
        common = (common - common.mean(axis=1, keepdims=True)) / common.std(axis=1, keepdims=True)
        weights = np.exp(KNOWS_THE_FILMS * common - np.abs(people.age[:, None] - own.age) / YEARS)
        weights *= np.where(people.gender[:, None] == own.gender, 1.0, OTHER_GENDER)
        weights *= np.where(people.occupation[:, None] == own.occupation, SAME_OCCUPATION, 1.0)
        scaled: Array = weights / weights.mean(axis=1, keepdims=True)
        return scaled


class _Known:
    """Which films were offered to each user so far."""

    def __init__(self, films: int) -> None:
        self._of_user: dict[int, Array] = {}
        self._films = films

    def after(self, visitors: NDArray[np.int64], shown: NDArray[np.int64]) -> Array:
        """1 for each film that the user of a row knows after it, shape (n, films)."""
        known = np.empty((len(shown), self._films))
        for row, (user, films) in enumerate(zip(visitors.tolist(), shown, strict=True)):
            own = self._of_user.setdefault(user, np.zeros(self._films))
            own[films] = 1.0
            known[row] = own
        return known


def _effects(
    user: NDArray[np.int64], film: NDArray[np.int64], rating: Array, films: int
) -> tuple[Array, Array]:
    """How many stars a user gives more than others, and a film gets more: shrunk least squares."""
    lenient, effect = np.zeros(user.max() + 1), np.zeros(films)
    for _ in range(15):
        effect = np.bincount(film, rating - lenient[user], films) / (
            np.bincount(film, None, films) + SHRINK
        )
        lenient = np.bincount(user, rating - effect[film]) / (np.bincount(user) + SHRINK)
    return lenient, effect
