from keras_bert_layers.losses.ranking import LambdaRank as LambdaRank
from keras_bert_layers.losses.ranking import ListNet as ListNet
from keras_bert_layers.losses.ranking import RankNet as RankNet
