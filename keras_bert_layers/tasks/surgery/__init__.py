"""Models with another vocabulary or more positions."""
