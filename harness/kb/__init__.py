"""The graph tools as a Python client in the sandbox: a Unix socket that serves one attempt, and the client's module."""

TOOLS = ("search", "get_node", "get_schema", "neighbors")  # what the client can call
