"""Many deployments over HTTP: tokens, metrics, a dashboard. Knows no equation.

``c4b serve`` runs it (``c4b.service.serving.server``); ``c4b.Client`` speaks to it.
"""
