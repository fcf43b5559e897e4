"""A durable deployment: retries, a crash, an audit, and a forgery that is noticed."""

import sqlite3
import struct
import tempfile

from c4b import Deployment, LinearModel
from c4b.errors import JournalCorrupt

folder = tempfile.mkdtemp()
store = f"sqlite:///{folder}/shop.db"
model = LinearModel(dim=2, noise=0.1, norm_bound=1.0)

with Deployment.create(store, "homepage", model, reserve=0.5) as dep:
    dep.learn([[1.0, 0.0], [1.0, 0.2]], [0.50, 0.55])
    request = {"candidates": [[1.0, 0.1], [1.0, -0.3]], "baseline": [1.0, 0.0], "request_id": "r-1"}
    first = dep.decide(**request, context={"user": "u-4711"})

with Deployment.open(store, "homepage") as dep:  # after a crash, elsewhere
    assert dep.decide(**request) == first  # the caller asked again: decided once, charged once
    dep.observe(first.id, 0.58)
    for visit in range(20):
        made = dep.decide([[1.0, 0.1]], [1.0, 0.0], request_id=f"v-{visit}")
        dep.observe(made.id, 0.5)
    print(dep.explain(first.id).summary)
    print(dep.audit())

with sqlite3.connect(f"{folder}/shop.db") as raw:  # somebody improves an outcome
    last = "SELECT place, payload FROM c4b_journal WHERE kind = 'observed' ORDER BY place DESC LIMIT 1"
    place, payload = raw.execute(last).fetchone()
    better = payload.replace(struct.pack("<d", 0.5), struct.pack("<d", 0.9))
    raw.execute("UPDATE c4b_journal SET payload = ? WHERE place = ?", (better, place))
raw.close()
try:
    Deployment.open(store, "homepage")
except JournalCorrupt as found:
    print("noticed:", found)
