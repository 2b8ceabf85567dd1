"""Contents of the configs of HuggingFace and Google for one small encoder, and the fields that they stand for."""

SIZES = {"vocabulary_size": 97, "hidden_dim": 12, "num_layers": 2, "num_heads": 3, "intermediate_dim": 20}
GOOGLE = {
    "attention_probs_dropout_prob": 0.2,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.3,
    "hidden_size": 12,
    "initializer_range": 0.04,
    "intermediate_size": 20,
    "max_position_embeddings": 11,
    "num_attention_heads": 3,
    "num_hidden_layers": 2,
    "type_vocab_size": 5,
    "vocab_size": 97,
}
HUGGINGFACE = {**GOOGLE, "model_type": "bert", "layer_norm_eps": 1e-5}
EXPECTED = {
    **SIZES,
    "dropout": 0.3,
    "attention_dropout": 0.2,
    "initializer_range": 0.04,
    "max_sequence_length": 11,
    "num_segments": 5,
}
