"""The commands of `keras-bert-layers`: one file each, none of which imports another."""
