"""One TOML file per mode: its prompt text and its settings. Imports nothing else of this project."""
