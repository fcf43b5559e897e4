"""The command ``c4b``: commands over studies, deployments, the service and its client."""
