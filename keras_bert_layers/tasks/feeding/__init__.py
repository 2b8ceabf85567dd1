"""What feeds every kind of data to a model: columns, their order, streams, processes."""
