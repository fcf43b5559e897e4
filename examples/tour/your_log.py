"""Before going live: features from a log, a diagnosis, a plan and a replay."""

import numpy as np
import polars as pl

from c4b.diagnostics import diagnose
from c4b.features import FeatureBuilder, Interaction, Intercept, Number, OneHot
from c4b.logs import Columns, read_log
from c4b.planning import plan_log
from c4b.replay import Terms, replay_log

draw, n = np.random.default_rng(1), 4000  # your log: pages drawn at random, clicks
age = draw.uniform(20, 60, n)
page = draw.choice(["home", "offer", "news"], n)
rate = np.select([page == "home", page == "offer"], [0.30, 0.32 + 0.01 * (age - 40)], 0.25)
frame = pl.DataFrame({"page": page, "age": age, "click": (draw.random(n) < rate).astype(float)})

log = read_log(frame, Columns(reward="click", action="page", context=("age",)), reward_range=(0.0, 1.0))
past, rest = log.split(2000)  # choose on the past, prove on the rest

pages = OneHot("page", labels=("home", "news", "offer"))
builder = FeatureBuilder([Intercept(), pages, Interaction(pages, Number("age"))]).fit(past.frame)

for finding in diagnose(builder.transform(past.frame), past.numbers("reward"), noise=0.5).findings:
    print("ok " if finding.good else "no ", finding.question)

terms = Terms("home", uniform=True)
plan = plan_log(rest, terms, rounds_a_day=2000, builder=builder, simulations=3, rounds=400)
print(plan.proposal.risk)
print(plan.verdict)

replayed = replay_log(log, terms, builder)
for result in replayed.results:
    print(f"{result.policy}: {result.rounds} rounds, reward {result.reward:.3f}")
