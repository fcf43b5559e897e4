"""Recompute a journal with code that takes no part in decisions."""
