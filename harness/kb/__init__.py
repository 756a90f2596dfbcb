"""The graph tools as a Python client in the sandbox: a Unix socket that serves one attempt, and the client's module."""
