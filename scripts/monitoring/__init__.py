"""A dashboard for Grafana and alert rules for Prometheus, made from the metrics."""
