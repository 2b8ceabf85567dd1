"""What transformers, sentence-transformers, KerasHub and Keras call what is here: fields, arguments, classes."""

# Keys of a `config.json` of transformers -> fields of `BertConfig`, in the order in which they are written.
FIELDS = {
    "vocab_size": "vocabulary_size",
    "hidden_size": "hidden_dim",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_dim",
    "hidden_act": "activation",
    "max_position_embeddings": "max_sequence_length",
    "type_vocab_size": "num_segments",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
    "initializer_range": "initializer_range",
    "embedding_size": "embedding_dim",
    "layer_norm_eps": "layer_norm_epsilon",
}

# Arguments of other libraries -> ours, and what to write where there is none.
ARGUMENTS = {"num_labels": "num_classes", "n_classes": "num_classes", "labels": "y", "texts": "x", "sentences": "x"}
WAYS = {
    "learning_rate": "Give `optimizer=keras_bert_layers.optimizers.adamw(learning_rate)`.",
    **dict.fromkeys(("question", "context"), "Give both as `x=(question, context)`."),
}

# Names of transformers, sentence-transformers, KerasHub and Keras -> what is here instead.
NAMES = {
    "AutoModel": "load_backbone",
    "AutoTokenizer": "load_tokenizer",
    "BertForSequenceClassification": "BertClassifier",
    "BertModel": "BertBackbone",
    "BertTextClassifier": "BertClassifier",
    "CrossEncoder": "BertCrossEncoder",
    "SentenceTransformer": "BertSentenceEncoder",
    "load_model": "load_task",
}
# The relatives of BERT in the names of transformers' classes: `RobertaClassifier` is another name of `BertClassifier`.
RELATIVES = (
    "DistilBert",
    "Electra",
    "XLMRoberta",
    "Roberta",
    "Camembert",
    "MPNet",
    "ModernBert",
    "Albert",
    "DebertaV2",
    "NomicBert",
    "Gte",
)
