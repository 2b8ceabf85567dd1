"""Masks for masked language modelling."""
