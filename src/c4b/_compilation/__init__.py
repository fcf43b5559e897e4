"""Kernels: how they are compiled, kept on disk and told about. Knows no equation."""
