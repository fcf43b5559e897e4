"""A Grafana dashboard for ``/metrics``: ``c4b grafana > c4b.json``, then import the file."""

from __future__ import annotations

from typing import Any

_SOURCE = {"type": "prometheus", "uid": "${source}"}
_SELECTED = 'deployment=~"$deployment"'


def _panel(number: int, title: str, unit: str, *queries: tuple[str, str], **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "type": "timeseries",
        "title": title,
        "datasource": _SOURCE,
        "gridPos": {"h": 8, "w": 12, "x": 12 * ((number - 1) % 2), "y": 8 * ((number - 1) // 2)},
        "fieldConfig": {"defaults": {"unit": unit, "min": more.pop("minimum", None)}, "overrides": []},
        "targets": [
            {"refId": chr(65 + n), "expr": query, "legendFormat": legend, "datasource": _SOURCE}
            for n, (query, legend) in enumerate(queries)
        ],
        **more,
    }


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana imports it. Grafana then asks for the Prometheus data source."""
    each = "{{deployment}}"
    rate = "rate(%s{" + _SELECTED + "}[5m])"
    latency = "histogram_quantile(%s, sum by (le) (rate(c4b_http_request_seconds_bucket%s[5m])))"
    deciding = '{route="/v1/deployments/{name}/decisions",method="POST"}'
    panels = [
        _panel(
            1, "Alarm (1: certificates are void)", "none", (f"c4b_alarm{{{_SELECTED}}}", each), minimum=0
        ),
        _panel(
            2,
            "Bank, certified (units of reward; below 0 is not covered)",
            "none",
            (f"c4b_bank{{{_SELECTED}}}", each),
            (f"c4b_reserve{{{_SELECTED}}}", f"{each} reserve"),
        ),
        _panel(
            3,
            "Share of decisions that played the baseline, 5 min",
            "percentunit",
            (f"{rate % 'c4b_fallbacks_total'} / {rate % 'c4b_decisions_total'}", each),
            minimum=0,
        ),
        _panel(4, "Decisions per second", "reqps", (rate % "c4b_decisions_total", each), minimum=0),
        _panel(
            5,
            "Pending outcomes, and known outcomes that wait for them",
            "none",
            (f"c4b_pending_outcomes{{{_SELECTED}}}", f"{each} pending"),
            (f"c4b_waiting_outcomes{{{_SELECTED}}}", f"{each} waiting"),
            minimum=0,
        ),
        _panel(
            6,
            "Age of the oldest pending outcome",
            "s",
            (f"c4b_oldest_pending_seconds{{{_SELECTED}}}", each),
            minimum=0,
        ),
        _panel(
            7, "Radius of the confidence set", "none", (f"c4b_radius{{{_SELECTED}}}", each), minimum=0
        ),
        _panel(
            8,
            "Time to decide",
            "s",
            *((latency % (q, deciding), f"p{100 * float(q):g}") for q in ("0.5", "0.99")),
            minimum=0,
        ),
        _panel(
            9,
            "Requests that failed, per second",
            "reqps",
            ('sum by (status) (rate(c4b_http_requests_total{status=~"5.."}[5m]))', "{{status}}"),
            minimum=0,
        ),
        _panel(
            10,
            "Requests refused, per second",
            "reqps",
            ('sum by (status) (rate(c4b_http_requests_total{status=~"4.."}[5m]))', "{{status}}"),
            minimum=0,
        ),
        _panel(
            11,
            "Unreadable (1: the store or the deployment cannot be read)",
            "none",
            ("1 - c4b_store_available", "store, {{instance}}"),
            ("c4b_broken", each),
            minimum=0,
        ),
        _panel(
            12,
            "Times of the journal ahead of the clock",
            "s",
            (f"c4b_clock_ahead_seconds{{{_SELECTED}}}", each),
            minimum=0,
        ),
    ]
    names = {
        "name": "deployment",
        "type": "query",
        "datasource": _SOURCE,
        "query": "label_values(c4b_decisions_total, deployment)",
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "current": {"text": "All", "value": "$__all"},
    }
    source = {"name": "source", "type": "datasource", "query": "prometheus", "label": "Data source"}
    return {
        "title": "Reserve-C4B deployments",
        "uid": "reserve-c4b",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [source, names]},
        "panels": panels,
    }
