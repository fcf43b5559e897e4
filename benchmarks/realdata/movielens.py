"""MovieLens-100k: recommend one of ten films that a user has rated. Full feedback, so nothing is
estimated.

A world, by seed: the ratings of 300 users are the past. They give each film's average, its popularity
and nothing else. Rounds draw one of the other users and ten of his films; the reward is 1 for a rating
of 4 or 5. The incumbent recommends the film that was rated most often in the past.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from realdata.datasets import table
from realdata.outcome import Outcome, of_replay, of_rewards

from c4b import LinearModel, Policy
from c4b._validate import Array
from c4b.features import FeatureBuilder, Intercept, Number
from c4b.replay import FullRound, replay_full

WORLD = "MovieLens"
PAST_USERS, POOL, HISTORY, ROUNDS = 300, 10, 2000, 20_000
ALPHA, NOISE, NORM_BOUND = 0.05, 0.5, 1.5


class Films(NamedTuple):
    """What the past says about each film: rows are films."""

    features: Array
    average: Array
    popularity: Array


class Rounds(NamedTuple):
    films: NDArray[np.int64]
    """Shape (rounds, POOL)."""
    rewards: Array


def past_films(ratings: pl.DataFrame, films: pl.DataFrame, users: Array) -> Films:
    """Averages are shrunk by five ratings towards the mean of all."""
    past = ratings.filter(pl.col("user_id").is_in(users.tolist()))
    liked = pl.col("liked")
    mean = float(past.select(liked.mean()).item())
    by_film = past.group_by("movie_id").agg(
        average=(liked.sum() + 5.0 * mean) / (liked.count() + 5.0), popularity=liked.count()
    )
    known = films.join(by_film, on="movie_id", how="left", maintain_order="left").with_columns(
        pl.col("average").fill_null(mean), pl.col("popularity").fill_null(0)
    )
    known = known.with_columns(log_popularity=(pl.col("popularity") + 1).log())
    genres = films.columns[5:]
    parts = [Number("average"), Number("log_popularity"), *(Number(g, scale="none") for g in genres)]
    builder = FeatureBuilder([Intercept(), *parts]).fit(known)
    features = builder.transform(known)
    features[:, 1:3] /= 4.0  # of the size of a genre
    features[:, 3:] /= 4.0
    return Films(features, known["average"].to_numpy(), known["popularity"].to_numpy().astype(float))


def draw_rounds(ratings: pl.DataFrame, users: Array, count: int, seed: int) -> Rounds:
    draw = np.random.default_rng([seed, 2])
    own: dict[int, tuple[Array, Array]] = {}
    for (user,), rows in ratings.filter(pl.col("user_id").is_in(users.tolist())).group_by("user_id"):
        if len(rows) >= POOL:
            ordered = rows.sort("movie_id")
            own[int(user)] = ordered["place"].to_numpy(), ordered["liked"].to_numpy().astype(float)
    names = np.array(sorted(own))
    films, rewards = np.empty((count, POOL), dtype=np.int64), np.empty((count, POOL))
    for n, user in enumerate(draw.choice(names, size=count)):
        places, liked = own[int(user)]
        chosen = draw.choice(len(places), size=POOL, replace=False)
        films[n], rewards[n] = places[chosen], liked[chosen]
    return Rounds(films, rewards)


def world(seed: int, rounds: int) -> tuple[Films, Rounds]:
    films = table("movielens-films")
    places = films.select("movie_id").with_row_index("place")
    ratings = table("movielens-ratings").with_columns(liked=(pl.col("rating") >= 4).cast(pl.Float64))
    ratings = ratings.join(places, on="movie_id")
    users = np.random.default_rng([seed, 1]).permutation(ratings["user_id"].unique().sort().to_numpy())
    past, live = users[:PAST_USERS], users[PAST_USERS:]
    return past_films(ratings, films, past), draw_rounds(ratings, live, HISTORY + rounds, seed)


def run(seed: int, rounds: int = ROUNDS) -> list[Outcome]:
    films, drawn = world(seed, rounds)
    every = np.arange(len(drawn.films))
    popular = films.popularity[drawn.films].argmax(axis=1)
    model = LinearModel(dim=films.features.shape[1], noise=NOISE, norm_bound=NORM_BOUND)
    past, live = every[:HISTORY], every[HISTORY:]
    outcomes = []
    for name in ("reserve-c4b+", "linucb"):
        policy = Policy(name, model, alpha=ALPHA)
        rows = drawn.films[past, popular[past]]
        policy.learn(films.features[rows], drawn.rewards[past, popular[past]])
        given = (
            FullRound(films.features[drawn.films[n]], int(popular[n]), drawn.rewards[n]) for n in live
        )
        outcomes.append(of_replay(WORLD, seed, replay_full(policy, given)))
    best = films.average[drawn.films].argmax(axis=1)
    outcomes.append(
        of_rewards(WORLD, seed, "most popular (incumbent)", drawn.rewards[live, popular[live]])
    )
    outcomes.append(of_rewards(WORLD, seed, "best past average", drawn.rewards[live, best[live]]))
    outcomes.append(of_rewards(WORLD, seed, "random", drawn.rewards[live].mean(axis=1)))
    return outcomes
