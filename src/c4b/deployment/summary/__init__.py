"""Answers to the most frequent questions, updated with every entry."""
