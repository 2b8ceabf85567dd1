"""`EncoderParts` against models of transformers that have the same parts, with the same weights."""

import keras
import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertConfig
from keras_bert_layers.layers import EncoderParts, RotaryPositions

pytestmark = pytest.mark.peers
# Two float32 implementations of two blocks.
TOLERANCE = 1e-5
SIZES = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20, "vocab_size": 29}
MASK = np.array([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0]], "int32")


def inputs():
    generator = np.random.default_rng(4)
    ids = {"token_ids": generator.integers(2, 29, MASK.shape), "segment_ids": generator.integers(0, 2, MASK.shape)}
    return {**{name: values.astype("int32") for name, values in ids.items()}, "padding_mask": MASK}


def set_weights(backbone, state, names):
    """Gives a backbone the weights of a model of transformers; `names`: what its parts are called there."""
    values = {key: np.asarray(value) for key, value in state.items()}

    def theirs(path):
        *parts, name = path.split("/")
        part = "/".join(parts).replace("/attention/query_key_value", "/attention/self/{}")
        part = part.replace("/attention/output", "/attention/output/dense").replace("encoder_block_", "encoder/layer/")
        for ours, other in names.items():
            part = part.replace(ours, other)
        part = part.replace("/feed_forward/intermediate", "/intermediate/dense")
        part = part.replace("/feed_forward/output", "/output/dense").replace(
            "embedding/layer_norm", "embeddings/LayerNorm"
        )
        key = part.replace("/", ".") + {"kernel": ".weight", "gamma": ".weight"}.get(name, ".bias")
        if "{}" in key:
            found = [values[key.format(kind)] for kind in ("query", "key", "value")]
            return np.concatenate([value.T if name == "kernel" else value for value in found], axis=-1)
        return values[key].T if name == "kernel" else values[key]

    tables = {"token": "word", "segment": "token_type", "position": "position"}
    for weight in backbone.weights:
        if weight.path.endswith("_embedding"):
            table = tables[weight.path.split("/")[-1].removesuffix("_embedding")]
            weight.assign(values[f"embeddings.{table}_embeddings.weight"])
        elif not weight.path.startswith("pooler"):
            weight.assign(theirs(weight.path))


def outputs(torch, model):
    given = inputs()
    with torch.no_grad():
        return model.eval()(
            input_ids=torch.tensor(given["token_ids"].astype("int64")),
            token_type_ids=torch.tensor(given["segment_ids"].astype("int64")),
            attention_mask=torch.tensor(MASK.astype("int64")),
        ).last_hidden_state.numpy()


def visible(torch, model):
    """Weights large enough that a missing one would be seen."""
    torch.manual_seed(3)
    for parameter in model.parameters():
        parameter.data.normal_(0.0, 0.4)
    return model


def test_rotary_positions_are_those_of_roformer(transformers, torch):
    config = transformers.RoFormerConfig(**SIZES, embedding_size=12, max_position_embeddings=11, hidden_act="gelu")
    theirs = visible(torch, transformers.RoFormerModel(config))
    theirs.encoder.embed_positions.weight.data = theirs.encoder.embed_positions.create_weight()
    ours = BertBackbone(
        BertConfig(vocabulary_size=29, hidden_dim=12, num_layers=2, num_heads=3, intermediate_dim=20),
        parts=EncoderParts(positions=RotaryPositions()),
    )
    norms = {"/attention_layer_norm": "/attention/output/LayerNorm", "/feed_forward_layer_norm": "/output/LayerNorm"}
    set_weights(ours, theirs.state_dict(), norms)
    found = keras.ops.convert_to_numpy(ours(inputs())["sequence_output"])
    np.testing.assert_allclose(found[MASK == 1], outputs(torch, theirs)[MASK == 1], atol=TOLERANCE)


def test_layer_norm_first_is_that_of_roberta_prelayernorm(transformers, torch):
    config = transformers.RobertaPreLayerNormConfig(
        **SIZES, max_position_embeddings=13, type_vocab_size=2, hidden_act="gelu", pad_token_id=1, layer_norm_eps=1e-12
    )
    theirs = visible(torch, transformers.RobertaPreLayerNormModel(config, add_pooling_layer=False))
    ours = BertBackbone(
        BertConfig(
            vocabulary_size=29,
            hidden_dim=12,
            num_layers=2,
            num_heads=3,
            intermediate_dim=20,
            max_sequence_length=11,
            position_offset=2,
        ),
        parts=EncoderParts(normalize_first=True),
    )
    norms = {
        "/attention_layer_norm": "/attention/LayerNorm",
        "/feed_forward_layer_norm": "/intermediate/LayerNorm",
        "final_layer_norm": "LayerNorm",
    }
    set_weights(ours, theirs.state_dict(), norms)
    found = keras.ops.convert_to_numpy(ours(inputs())["sequence_output"])
    np.testing.assert_allclose(found[MASK == 1], outputs(torch, theirs)[MASK == 1], atol=TOLERANCE)
