"""One policy made durable: journal, snapshots, audit. Knows nothing of HTTP or simulation."""

from c4b.deployment.deployment import Deployment
from c4b.deployment.limits import Limits
from c4b.deployment.records import PendingDecision, Point, Record, Status
from c4b.deployment.report import Report

__all__ = ["Deployment", "Limits", "PendingDecision", "Point", "Record", "Report", "Status"]
