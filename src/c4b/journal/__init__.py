"""The journal: entries, their hash chain, and the stores that keep them. Knows no policy."""
