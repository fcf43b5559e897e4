"""Deterministic Hypothesis: the same examples on every machine and in every run."""

from hypothesis import settings

settings.register_profile("c4b", derandomize=True, deadline=None, max_examples=60, database=None)
settings.load_profile("c4b")
