"""Weights: the table of their names, moving them between a file and a model, and the report."""
