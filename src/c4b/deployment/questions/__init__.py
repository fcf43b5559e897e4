"""Queries about a deployment and its history. They change nothing."""
