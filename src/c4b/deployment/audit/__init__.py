"""Recompute a journal with code that decided nothing."""
