"""The table of weight names: one row a stored weight, one column a layout.

A reader walks the rows and moves a column's tensors into our weights; a writer walks the same rows the other way.
Legend of shapes: H hidden, E embedding, I intermediate, V vocabulary, P positions, T segments, C classes; N heads of
width D.

References:
    The column `google`: google-research/bert, modeling.py and run_pretraining.py, run_classifier.py, run_squad.py.
    The column `huggingface`: transformers, models/bert/modeling_bert.py.
    The column `kerashub`: keras_hub, models/bert/bert_backbone.py, layers/modeling/transformer_encoder.py.
"""

from __future__ import annotations

from keras_bert_layers.checkpoints.weight_row import StoredWeight, Transform, WeightRow
from keras_bert_layers.config import BertConfig

_ATTENTION = "encoder_block_{layer}/attention"
_GOOGLE_LAYER = "bert/encoder/layer_{layer}"
_HUGGINGFACE_LAYER = "encoder.layer.{layer}"
_KERASHUB_LAYER = "transformer_layer_{layer}"


def _row(ours: str, google: str, huggingface: str, kerashub: str) -> WeightRow:
    return WeightRow(ours, StoredWeight(google), StoredWeight(huggingface), StoredWeight(kerashub))


def _cell(name: str | None, end: str) -> StoredWeight | None:
    return None if name is None else StoredWeight(name + end)


def _dense(ours: str, google: str | None, huggingface: str, kerashub: str | None) -> tuple[WeightRow, WeightRow]:
    """Kernel and bias: torch stores a kernel as (outputs, inputs), Keras and Google as (inputs, outputs)."""
    return (
        WeightRow(
            f"{ours}/kernel",
            _cell(google, "/kernel"),
            StoredWeight(f"{huggingface}.weight", Transform.TRANSPOSE),
            _cell(kerashub, "/kernel"),
        ),
        WeightRow(
            f"{ours}/bias",
            _cell(google, "/bias"),
            StoredWeight(f"{huggingface}.bias"),
            _cell(kerashub, "/bias"),
        ),
    )


def _output_weights(ours: str, google: str | None, huggingface: str, kerashub: str | None) -> tuple[WeightRow, ...]:
    """A head that Google keeps as bare variables, the kernel as (outputs, inputs)."""
    kernel, bias = _dense(ours, None, huggingface, kerashub)
    if google is None:
        return kernel, bias
    return (
        WeightRow(
            kernel.ours,
            StoredWeight(f"{google}output_weights", Transform.TRANSPOSE),
            kernel.huggingface,
            kernel.kerashub,
        ),
        WeightRow(bias.ours, StoredWeight(f"{google}output_bias"), bias.huggingface, bias.kerashub),
    )


def _part(number: int, name: str) -> tuple[WeightRow, WeightRow]:
    """Query, key or value: each a third of our merged product, and KerasHub gives the heads an axis."""
    google = f"{_GOOGLE_LAYER}/attention/self/{name}"
    huggingface = f"{_HUGGINGFACE_LAYER}.attention.self.{name}"
    kerashub = f"{_KERASHUB_LAYER}/self_attention_layer/{name}"
    return (
        WeightRow(
            f"{_ATTENTION}/query_key_value/kernel",
            StoredWeight(f"{google}/kernel"),
            StoredWeight(f"{huggingface}.weight", Transform.TRANSPOSE),
            StoredWeight(f"{kerashub}/kernel", Transform.SPLIT_LAST),  # [H, N, D]
            third=number,
        ),
        WeightRow(
            f"{_ATTENTION}/query_key_value/bias",
            StoredWeight(f"{google}/bias"),
            StoredWeight(f"{huggingface}.bias"),
            StoredWeight(f"{kerashub}/bias", Transform.SPLIT_LAST),  # [N, D]
            third=number,
        ),
    )


def _attention_output() -> tuple[WeightRow, WeightRow]:
    kerashub = f"{_KERASHUB_LAYER}/self_attention_layer/attention_output"
    kernel, bias = _dense(
        f"{_ATTENTION}/output",
        f"{_GOOGLE_LAYER}/attention/output/dense",
        f"{_HUGGINGFACE_LAYER}.attention.output.dense",
        kerashub,
    )
    split = StoredWeight(f"{kerashub}/kernel", Transform.SPLIT_FIRST)  # [N, D, H]
    return WeightRow(kernel.ours, kernel.google, kernel.huggingface, split), bias


def _layer_norm(ours: str, google: str, huggingface: str, kerashub: str) -> tuple[WeightRow, WeightRow]:
    return (
        _row(f"{ours}/gamma", f"{google}/gamma", f"{huggingface}.weight", f"{kerashub}/gamma"),
        _row(f"{ours}/beta", f"{google}/beta", f"{huggingface}.bias", f"{kerashub}/beta"),
    )


EMBEDDING_ROWS = (
    WeightRow(  # [V, E]
        "embedding/token_embedding",
        StoredWeight("bert/embeddings/word_embeddings"),
        StoredWeight("embeddings.word_embeddings.weight", again="cls.predictions.decoder.weight"),
        StoredWeight("token_embedding/embeddings"),
    ),
    _row(  # [T, E]
        "embedding/segment_embedding",
        "bert/embeddings/token_type_embeddings",
        "embeddings.token_type_embeddings.weight",
        "segment_embedding/embeddings",
    ),
    _row(  # [P, E]
        "embedding/position_embedding",
        "bert/embeddings/position_embeddings",
        "embeddings.position_embeddings.weight",
        "position_embedding/embeddings",
    ),
    *_layer_norm(  # [E]
        "embedding/layer_norm", "bert/embeddings/LayerNorm", "embeddings.LayerNorm", "embeddings_layer_norm"
    ),
)

# Neither Google's BERT nor transformers' has a narrower embedding. SimBERT, in Google's layout, and ELECTRA, the same
# encoder in transformers, call its projection so. KerasHub has none.
PROJECTION_ROWS = _dense(  # [E, H] [H]
    "embedding/projection", "bert/encoder/embedding_hidden_mapping_in", "embeddings_project", None
)

BLOCK_ROWS = (
    *_part(0, "query"),  # [H, H] [H]
    *_part(1, "key"),  # [H, H] [H]
    *_part(2, "value"),  # [H, H] [H]
    *_attention_output(),  # [H, H] [H]
    *_layer_norm(  # [H] [H]
        "encoder_block_{layer}/attention_layer_norm",
        f"{_GOOGLE_LAYER}/attention/output/LayerNorm",
        f"{_HUGGINGFACE_LAYER}.attention.output.LayerNorm",
        f"{_KERASHUB_LAYER}/self_attention_layer_norm",
    ),
    *_dense(  # [H, I] [I]
        "encoder_block_{layer}/feed_forward/intermediate",
        f"{_GOOGLE_LAYER}/intermediate/dense",
        f"{_HUGGINGFACE_LAYER}.intermediate.dense",
        f"{_KERASHUB_LAYER}/feedforward_intermediate_dense",
    ),
    *_dense(  # [I, H] [H]
        "encoder_block_{layer}/feed_forward/output",
        f"{_GOOGLE_LAYER}/output/dense",
        f"{_HUGGINGFACE_LAYER}.output.dense",
        f"{_KERASHUB_LAYER}/feedforward_output_dense",
    ),
    *_layer_norm(  # [H] [H]
        "encoder_block_{layer}/feed_forward_layer_norm",
        f"{_GOOGLE_LAYER}/output/LayerNorm",
        f"{_HUGGINGFACE_LAYER}.output.LayerNorm",
        f"{_KERASHUB_LAYER}/feedforward_layer_norm",
    ),
)

POOLER_ROWS = _dense("pooler/dense", "bert/pooler/dense", "pooler.dense", "pooled_dense")  # [H, H] [H]

MASKED_LM_ROWS = (
    *_dense(  # [H, E] [E]
        "masked_lm_head/dense",
        "cls/predictions/transform/dense",
        "cls.predictions.transform.dense",
        "mlm_head/intermediate_dense",
    ),
    *_layer_norm(  # [E] [E]
        "masked_lm_head/layer_norm",
        "cls/predictions/transform/LayerNorm",
        "cls.predictions.transform.LayerNorm",
        "mlm_head/intermediate_layer_norm",
    ),
    WeightRow(  # [V]
        "masked_lm_head/bias",
        StoredWeight("cls/predictions/output_bias"),
        StoredWeight("cls.predictions.bias", again="cls.predictions.decoder.bias"),
        StoredWeight("mlm_head/output_bias"),
    ),
)
NEXT_SENTENCE_ROWS = _output_weights(  # [H, 2] [2]
    "next_sentence_head/dense", "cls/seq_relationship/", "cls.seq_relationship", None
)
CLASSIFIER_ROWS = _output_weights("classification_head/dense", "", "classifier", "logits")  # [H, C] [C]
# A next sentence head read as a classifier of pairs.
NEXT_SENTENCE_CLASSIFIER_ROWS = _output_weights(  # [H, 2] [2]
    "classification_head/dense", "cls/seq_relationship/", "cls.seq_relationship", None
)
TOKEN_CLASSIFIER_ROWS = _dense("token_classification_head/dense", None, "classifier", None)  # [H, C] [C]
SPAN_ROWS = _output_weights("span_head/dense", "cls/squad/", "qa_outputs", None)  # [H, 2] [2]
MULTIPLE_CHOICE_ROWS = _dense("multiple_choice_head/dense", None, "classifier", None)  # [H, 1] [1]
# The dense layer of sentence-transformers, `Dense`, is a file of its own; `dense.` stands for it.
DENSE_PROJECTION_ROWS = _dense("dense_projection", None, "dense.linear", None)  # [H, C] [C]


def encoder_rows(config: BertConfig) -> tuple[WeightRow, ...]:
    """The rows of every weight of `BertBackbone(config)` but its pooler, which some checkpoints do without."""
    projection = () if config.embedding_dim is None else PROJECTION_ROWS
    blocks = [row.in_layer(index) for index in range(config.num_layers) for row in BLOCK_ROWS]
    return (*EMBEDDING_ROWS, *projection, *blocks)


def backbone_rows(config: BertConfig) -> tuple[WeightRow, ...]:
    """The rows of every weight of `BertBackbone(config)`, from the ids to the pooler.

    Args:
        config: the backbone's config; its number of layers and its `embedding_dim` decide which rows there are.

    Returns:
        5 rows of the embedding, 2 more with a narrower embedding, 16 of each block, and 2 of the pooler.

    Examples:
        >>> config = BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=2, num_heads=2, intermediate_dim=7)
        >>> len(backbone_rows(config))
        39
        >>> backbone_rows(config)[5].huggingface.name
        'encoder.layer.0.attention.self.query.weight'
    """
    return (*encoder_rows(config), *POOLER_ROWS)
