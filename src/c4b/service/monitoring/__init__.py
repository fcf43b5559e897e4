"""What the service tells its operators: metrics, logs, health, a Grafana dashboard."""
