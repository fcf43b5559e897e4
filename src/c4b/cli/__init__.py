"""The command ``c4b``: thin commands over study (and later deployment and service)."""
