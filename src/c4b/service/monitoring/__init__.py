"""Monitoring: Prometheus metrics, logs, health, a Grafana dashboard."""
