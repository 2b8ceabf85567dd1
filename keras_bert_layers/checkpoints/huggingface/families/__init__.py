"""The model types of transformers that are read and written, one file each."""
