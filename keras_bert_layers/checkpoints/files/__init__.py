"""File formats: safetensors, PyTorch, HDF5, TensorFlow's bundles, JSON and `.keras` archives."""
