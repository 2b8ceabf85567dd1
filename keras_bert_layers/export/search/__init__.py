"""Exported models that hold a corpus and answer queries with its documents."""
