"""Graph sources -> files, and an export read back. Imports nothing else of this project."""
