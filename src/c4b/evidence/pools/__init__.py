"""Bounds of all candidates of a pool at once."""
