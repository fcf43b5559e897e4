"""One question, its own ellipsoid."""
