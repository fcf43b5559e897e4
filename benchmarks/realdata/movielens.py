"""MovieLens-100k: recommend one of ten films that a user has rated. Full feedback, so nothing is
estimated.

A world, by seed: the ratings of 300 users are the past, and all that features are made of. Rounds draw
one of the other users and ten of his films; the reward is 1 for a rating of 4 or 5. The incumbent
recommends the film that was rated most often in the past.

    python benchmarks/realdata/movielens.py [--seeds 10] [--first-seed 100]

prints JSON, twelve seconds of a processor for each seed: rewards over the second half of the rounds, and
how often the policy was at least 15 % above the incumbent, above LinUCB and above the best past average.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import polars as pl
from numpy.typing import NDArray
from realdata.datasets import table
from realdata.film_log import GENRES
from realdata.outcome import CITED, Outcome, of_replay, of_rewards
from realdata.similar_users import People, SimilarUsers

from c4b import LinearModel, Policy
from c4b._validate import Array
from c4b.replay import FullRound, ReplayResult, replay_full

WORLD = "MovieLens"
PAST_USERS, POOL, HISTORY, ROUNDS = 300, 10, 2000, 20_000
ALPHA, NOISE, NORM_BOUND = 0.05, 0.5, 1.5
SIZE = 4.0
"""Features but the intercept are divided by it, so that a pool's differences are below 1."""
GATED, UNGATED, INCUMBENT, AVERAGE = (
    "reserve-c4b+", "linucb", "most popular (incumbent)", "best past average"
)  # fmt: skip


class World(NamedTuple):
    """The first HISTORY rounds are the policy's history, the others are played."""

    users: NDArray[np.int64]
    """Who came, by round."""
    films: NDArray[np.int64]
    """What was offered, shape (HISTORY + rounds, POOL)."""
    features: Array
    """Shape (HISTORY + rounds, POOL, d)."""
    rewards: Array
    """Shape (HISTORY + rounds, POOL)."""
    popular: NDArray[np.int64]
    """The incumbent's choice in each round."""
    best_average: NDArray[np.int64]
    """The film with the best average of the past."""

    @property
    def model(self) -> LinearModel:
        return LinearModel(dim=self.features.shape[2], noise=NOISE, norm_bound=NORM_BOUND)

    def replay(self, name: str) -> ReplayResult:
        """A policy that learns the incumbent's history and then plays."""
        policy = Policy(name, self.model, alpha=ALPHA)
        past = np.arange(HISTORY), self.popular[:HISTORY]
        policy.learn(self.features[past], self.rewards[past])
        live = range(HISTORY, len(self.rewards))
        return replay_full(
            policy, (FullRound(self.features[n], int(self.popular[n]), self.rewards[n]) for n in live)
        )

    def earned(self, chosen: NDArray[np.int64]) -> Array:
        """What a rule that never learns earns in the rounds that are played."""
        return self.rewards[np.arange(len(chosen)), chosen][HISTORY:]


class Drawn(NamedTuple):
    users: NDArray[np.int64]
    films: NDArray[np.int64]
    """Shape (rounds, POOL)."""
    rewards: Array


LOGGED = 7
"""The stream of rounds in which one of the ten films was shown at random."""


def randomised_log(seed: int, rows: int) -> pl.DataFrame:
    """What a team would have before it starts: candidates, their features, what was shown, what the
    incumbent would have shown, and whether the user liked what he saw. No round of it is played later."""
    given = world(seed, rows - HISTORY, LOGGED)
    every, shown = np.arange(rows), np.random.default_rng([seed, 6]).integers(0, POOL, rows)
    return pl.DataFrame(
        {
            "films": given.films, "features": given.features, "shown": given.films[every, shown],
            "popular": given.films[every, given.popular], "liked": given.rewards[every, shown],
        }
    )  # fmt: skip


def world(seed: int, rounds: int, stream: int = 2) -> World:
    """stream: other rounds of the same users and films."""
    films, users = table("movielens-films"), table("movielens-users")
    places = films.select("movie_id").with_row_index("place")
    ratings = table("movielens-ratings").with_columns(liked=(pl.col("rating") >= 4).cast(pl.Float64))
    ratings = ratings.join(places, on="movie_id")
    ids = np.random.default_rng([seed, 1]).permutation(ratings["user_id"].unique().sort().to_numpy())
    past = ratings.filter(pl.col("user_id").is_in(ids[:PAST_USERS].tolist()))
    drawn = draw_rounds(ratings, ids[PAST_USERS:], HISTORY + rounds, [seed, stream])
    popularity = np.bincount(past["place"].to_numpy(), minlength=len(films)).astype(float)
    liked = np.bincount(past["place"].to_numpy(), past["liked"].to_numpy(), len(films))
    average = (liked + 5.0 * past["liked"].mean()) / (popularity + 5.0)
    similar = SimilarUsers(past, users, len(films))
    people = People.of(users, drawn.users)
    said = similar.say(people, drawn.users, drawn.films)
    return World(
        users=drawn.users,
        films=drawn.films,
        features=_features(said, similar.effect, popularity, films, drawn.films, people),
        rewards=drawn.rewards,
        popular=popularity[drawn.films].argmax(axis=1),
        best_average=average[drawn.films].argmax(axis=1),
    )


def _features(
    said: Array,
    effect: Array,
    popularity: Array,
    films: pl.DataFrame,
    shown: NDArray[np.int64],
    people: People,
) -> Array:
    """Intercept, what similar users say, popularity, genres, and genres by age and by gender."""
    logs = np.log1p(popularity)
    numbers = [(said - effect.mean()) / effect.std(), ((logs - logs.mean()) / logs.std())[shown]]
    genres = films.select(GENRES).to_numpy().astype(float)[shown]
    older = (people.age - 33.0) / 24.0
    woman = (people.gender == "F") - 0.3
    taste = [genres, genres * older[:, None, None], genres * woman[:, None, None]]
    rest = [np.stack(numbers, axis=-1), *taste]
    return np.concatenate([np.ones((*shown.shape, 1)), *(part / SIZE for part in rest)], axis=-1)


def draw_rounds(ratings: pl.DataFrame, users: Array, count: int, seed: list[int]) -> Drawn:
    draw = np.random.default_rng(seed)
    own: dict[int, tuple[Array, Array]] = {}
    for (user,), rows in ratings.filter(pl.col("user_id").is_in(users.tolist())).group_by("user_id"):
        if len(rows) >= POOL:
            ordered = rows.sort("movie_id")
            own[int(user)] = ordered["place"].to_numpy(), ordered["liked"].to_numpy().astype(float)
    visitors = draw.choice(np.array(sorted(own)), size=count)
    films, rewards = np.empty((count, POOL), dtype=np.int64), np.empty((count, POOL))
    for n, user in enumerate(visitors):
        places, liked = own[int(user)]
        chosen = draw.choice(len(places), size=POOL, replace=False)
        films[n], rewards[n] = places[chosen], liked[chosen]
    return Drawn(visitors, films, rewards)


def run(seed: int, rounds: int = ROUNDS) -> list[Outcome]:
    given = world(seed, rounds)
    random = given.rewards[HISTORY:].mean(axis=1)
    return [
        *(of_replay(WORLD, seed, given.replay(name)) for name in (GATED, CITED, UNGATED)),
        of_rewards(WORLD, seed, "most popular (incumbent)", given.earned(given.popular)),
        of_rewards(WORLD, seed, "best past average", given.earned(given.best_average)),
        of_rewards(WORLD, seed, "random", random),
    ]


def summary(outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    """Over the second half of the rounds, by seed."""
    late = {
        name: np.array([row["reward_second_half"] for row in outcomes if row["policy"] == name])
        for name in (GATED, UNGATED, INCUMBENT, AVERAGE)
    }
    gated = [row for row in outcomes if row["policy"] == GATED]
    above = late[GATED] / late[INCUMBENT] - 1.0
    return {
        "seeds": len(above),
        "means": {name: round(float(values.mean()), 4) for name, values in late.items()},
        "above_the_incumbent": round(float(late[GATED].mean() / late[INCUMBENT].mean() - 1.0), 4),
        "smallest_above_the_incumbent": round(float(above.min()), 4),
        "seeds_at_least_15_percent_above": int((above >= 0.15).sum()),
        "seeds_not_below_linucb": int((late[GATED] >= late[UNGATED]).sum()),
        "seeds_not_below_best_average": int((late[GATED] >= late[AVERAGE]).sum()),
        "seeds_with_a_deficit_beyond_noise": sum(
            row["smallest_credit"] < -row["noise_allowance"] for row in gated
        ),
        "alarms": sum(row["alarm"] is not None for row in gated),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=100)
    given = parser.parse_args()
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    print(json.dumps(summary([each.as_dict() for seed in seeds for each in run(seed)])))


if __name__ == "__main__":
    main()
