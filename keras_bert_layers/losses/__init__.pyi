from keras_bert_layers.losses.vectors import AnglE as AnglE
from keras_bert_layers.losses.vectors import CoSENT as CoSENT
from keras_bert_layers.losses.vectors import DistillKLDiv as DistillKLDiv
from keras_bert_layers.losses.vectors import MarginMSE as MarginMSE
from keras_bert_layers.losses.vectors import Matryoshka as Matryoshka
from keras_bert_layers.losses.vectors import MultipleNegativesRanking as MultipleNegativesRanking
from keras_bert_layers.losses.vectors import Triplet as Triplet
from keras_bert_layers.losses.vectors import VectorLoss as VectorLoss
