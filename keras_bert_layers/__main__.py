"""`python -m keras_bert_layers` is `keras-bert-layers`."""

from keras_bert_layers.cli import run

if __name__ == "__main__":
    run()
