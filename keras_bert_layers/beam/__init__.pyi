from keras_bert_layers.beam.handlers import OnnxHandler as OnnxHandler
from keras_bert_layers.beam.handlers import SavedModelHandler as SavedModelHandler
