"""Training: what `fit`, `evaluate` and resuming need."""
