"""Rows to pretrain on: from files of text, with shards or without."""
