"""The agent loop and everything around it."""

__version__ = "0.1.0"
