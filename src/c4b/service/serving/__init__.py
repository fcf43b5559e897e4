"""Run the service: processes, sockets and the HTTP protocol."""
