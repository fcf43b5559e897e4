"""Run the service: processes, sockets, the HTTP protocol, a demo."""
