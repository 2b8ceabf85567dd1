"""Losses and metrics of the tasks."""
