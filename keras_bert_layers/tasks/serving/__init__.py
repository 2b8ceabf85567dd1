"""Exports: signatures, prompts and answers of one request."""
