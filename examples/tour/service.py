"""The HTTP service and its client. Real traffic needs ``c4b serve``; here it runs in a thread."""

import tempfile

import httpx

from c4b import Client, LinearModel
from c4b.service.serving.background import serve_in_background

with serve_in_background(f"sqlite:///{tempfile.mkdtemp()}/shop.db") as url, Client(url) as client:
    model = LinearModel(dim=2, noise=0.1, norm_bound=1.0)
    client.create("banner", model, reserve=0.5)
    client.learn("banner", [[1.0, 0.0], [1.0, 0.2]], [0.50, 0.55])
    decision = client.decide("banner", candidates=[[1.0, 0.1], [1.0, -0.3]], baseline=[1.0, 0.0])
    client.observe("banner", decision.id, 0.58)
    print(client.explain("banner", decision.id).summary)

    # any language: the same decision with nothing but HTTP
    answer = httpx.post(
        f"{url}/v1/deployments/banner/decisions",
        json={"candidates": [[1.0, 0.4]], "baseline": [1.0, 0.0]},
        headers={"Idempotency-Key": "visit-4711"},
    )
    print(answer.status_code, "candidate", answer.json()["action"])
    print("ready:", httpx.get(f"{url}/readyz").status_code, "audit:", client.audit("banner").clean)
