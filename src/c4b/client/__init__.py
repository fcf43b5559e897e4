"""The Python client of ``c4b serve``."""

from c4b.client.client import Client

__all__ = ["Client"]
