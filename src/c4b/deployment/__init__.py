"""Durable policies: journal, snapshots and audit. This package does not depend on HTTP or simulation."""

from c4b.deployment.audit.audit_report import Report
from c4b.deployment.deployment import Deployment
from c4b.deployment.limits import Limits
from c4b.deployment.questions.earnings import Earnings, EarningsPoint
from c4b.deployment.questions.search import Found
from c4b.deployment.questions.views import Order, PendingDecision, Point, Record, Status
from c4b.deployment.summary.item_counts import Item

__all__ = [
    "Deployment",
    "Earnings",
    "EarningsPoint",
    "Found",
    "Item",
    "Limits",
    "Order",
    "PendingDecision",
    "Point",
    "Record",
    "Report",
    "Status",
]
