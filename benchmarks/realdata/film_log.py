"""MovieLens-100k as a table: one row for each film that could be recommended in a round.

Columns of the user (age, gender, occupation), of the film (title, genres, and what 300 past users say
about it: average, log_popularity), and ``liked``: 1 for a rating of 4 or 5.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from realdata.datasets import table

PAST_USERS, POOL = 300, 10
GENRES = (
    "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama",
    "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War",
    "Western",
)  # fmt: skip


def past_and_rounds(seed: int, rounds: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(ratings of past users, POOL rows for each round of other users), with the same columns."""
    films = table("movielens-films").select("movie_id", "movie_title", *GENRES)
    rated = table("movielens-ratings").with_columns(liked=(pl.col("rating") >= 4).cast(pl.Float64))
    rated = rated.join(table("movielens-users"), on="user_id")
    users = np.random.default_rng([seed, 1]).permutation(rated["user_id"].unique().sort().to_numpy())
    past = rated.filter(pl.col("user_id").is_in(users[:PAST_USERS].tolist()))
    films = films.join(film_statistics(past), on="movie_id", how="left").with_columns(
        pl.col("average").fill_null(past["liked"].mean()), pl.col("log_popularity").fill_null(0.0)
    )
    return past.join(films, on="movie_id"), _rounds(rated, users[PAST_USERS:], rounds, seed).join(
        films, on="movie_id", maintain_order="left"
    )


def film_statistics(past: pl.DataFrame) -> pl.DataFrame:
    """Averages are shrunk by five ratings towards the mean of all."""
    mean, liked = past["liked"].mean(), pl.col("liked")
    return past.group_by("movie_id").agg(
        average=(liked.sum() + 5.0 * mean) / (liked.count() + 5.0),
        log_popularity=(liked.count() + 1).log(),
    )


def _rounds(rated: pl.DataFrame, users: np.ndarray, rounds: int, seed: int) -> pl.DataFrame:
    draw = np.random.default_rng([seed, 2])
    own = {
        user: rows.sort("movie_id")
        for (user,), rows in rated.filter(pl.col("user_id").is_in(users.tolist())).group_by("user_id")
    }
    names = np.array(sorted(own))
    pools = []
    for n, user in enumerate(draw.choice(names, size=rounds)):
        chosen = draw.choice(len(own[user]), size=POOL, replace=False)
        pools.append(own[user][chosen].with_columns(round=pl.lit(n)))
    return pl.concat(pools)
