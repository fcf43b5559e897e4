"""One policy made durable: journal, snapshots, audit. Knows nothing of HTTP or simulation."""

from c4b.deployment.audit.audit_report import Report
from c4b.deployment.deployment import Deployment
from c4b.deployment.earnings import Earnings, EarningsPoint
from c4b.deployment.item_counts import Item
from c4b.deployment.limits import Limits
from c4b.deployment.search import Found
from c4b.deployment.views import Order, PendingDecision, Point, Record, Status

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
