"""Metrics of BERT's tasks, as `keras.metrics.Metric`."""

__all__: list[str] = []
