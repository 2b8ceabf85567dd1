"""Signatures of features: strings in, vectors of tokens, words or texts out."""
