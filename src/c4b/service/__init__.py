"""Serve many deployments over HTTP, with tokens, metrics and a dashboard.

``c4b serve`` runs the service (see ``c4b.service.serving.server``); ``c4b.Client`` is its client.
"""
