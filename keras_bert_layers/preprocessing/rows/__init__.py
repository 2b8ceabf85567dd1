"""Rows to pretrain on: sentence pairs, full sentences, packed texts."""
