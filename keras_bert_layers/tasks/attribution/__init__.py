"""Which tokens decided an answer: integrated gradients over the embeddings of a task."""
