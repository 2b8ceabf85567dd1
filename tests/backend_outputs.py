"""Runs layers and backbone on the backend that KERAS_BACKEND names; test_backends.py starts it in a process of its own.

`python tests/backend_outputs.py FILE` writes FILE, an .npz of weights and outputs by name. It fails where TensorFlow
was imported on another backend.
"""

import os
import sys
import tempfile
import warnings
from pathlib import Path
from unittest import mock

import numpy as np

import keras_bert_layers
from keras_bert_layers import layers

MASK = np.array([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0]], "int32")


def to_numpy(value):
    import keras

    return keras.ops.convert_to_numpy(keras.ops.cast(value, "float32"))


def randomise(model):
    """The same visible weights on every backend."""
    generator = np.random.default_rng(12)
    model.set_weights([generator.normal(scale=0.3, size=weight.shape).astype("float32") for weight in model.weights])


def inputs():
    generator = np.random.default_rng(4)
    return {
        "token_ids": generator.integers(0, 29, (3, 7)).astype("int32"),
        "segment_ids": generator.integers(0, 4, (3, 7)).astype("int32"),
        "padding_mask": MASK,
    }


def in_one_program(model, given):
    """What a model makes of inputs; on JAX compiled as a whole, where else each new operation is its own program."""
    if os.environ["KERAS_BACKEND"] != "jax":
        return model(given)
    import jax

    return jax.jit(model.__call__)(given)


def backbone_outputs(found):
    config = keras_bert_layers.BertConfig(
        vocabulary_size=29,
        hidden_dim=12,
        num_layers=2,
        num_heads=3,
        intermediate_dim=20,
        max_sequence_length=11,
        num_segments=4,
        embedding_dim=5,
    )
    backbone = keras_bert_layers.BertBackbone(config)
    randomise(backbone)
    found.update({f"weight:{weight.path}": to_numpy(weight) for weight in backbone.weights})
    outputs = backbone(inputs())
    found.update({f"backbone:{key}": to_numpy(value) for key, value in outputs.items()})
    predicted = backbone.predict(inputs(), verbose=0)  # compiled
    found.update({f"predicted:{key}": to_numpy(value) for key, value in predicted.items()})
    # With scores asked, attention goes its own way instead of through the fused kernel.
    own = keras_bert_layers.BertBackbone(config, return_attention_scores=True)
    own.set_weights(backbone.get_weights())
    outputs = in_one_program(own, inputs())
    scores = outputs.pop("attention_scores")
    found.update({f"own:{key}": to_numpy(value) for key, value in outputs.items()})
    found.update({f"scores:{index}": to_numpy(value) for index, value in enumerate(scores)})
    half = keras_bert_layers.BertBackbone(config, dtype="mixed_bfloat16")
    half.set_weights(backbone.get_weights())
    found.update({f"half:{key}": to_numpy(value) for key, value in in_one_program(half, inputs()).items()})
    return backbone


def google_files(found, backbone):
    """Google's TensorFlow checkpoints, written and read again."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Google's files cannot name the erf form
        directory = keras_bert_layers.save_google(backbone, Path(folder) / "google")
        loaded = keras_bert_layers.load_backbone(directory)
    found.update({f"google:{key}": to_numpy(value) for key, value in loaded(inputs()).items()})


def saving(found, backbone):
    import keras

    with tempfile.TemporaryDirectory() as folder:
        backbone.save(Path(folder) / "backbone.keras")
        loaded = keras.models.load_model(Path(folder) / "backbone.keras")
    found.update({f"loaded:{key}": to_numpy(value) for key, value in loaded(inputs()).items()})


def layer_outputs(found):
    hidden = np.random.default_rng(3).normal(size=(3, 7, 12)).astype("float32")
    found["hidden"] = hidden
    for causal in (False, True):
        for masked in (False, True):
            attention = layers.SelfAttention(3, causal=causal)
            attention.build(hidden.shape)
            randomise(attention)
            mask = MASK if masked else None
            name = f"attention:{causal}:{masked}"
            found[f"{name}:fused"] = to_numpy(attention(hidden, mask))
            found[f"{name}:own"] = to_numpy(attention(hidden, mask, return_attention_scores=True)[0])
    for name, positions in {"rotary": layers.RotaryPositions(), "relative": layers.RelativePositionBias()}.items():
        near = layers.SelfAttention(3, window=3, positions=positions)
        near.build(hidden.shape)
        randomise(near)
        found[f"window:{name}:blocks"] = to_numpy(near(hidden, MASK))
        found[f"window:{name}:own"] = to_numpy(near(hidden, MASK, return_attention_scores=True)[0])
    for shares in (False, True):
        vectors = layers.RelativeVectors(num_buckets=4, max_distance=5, name="positions")
        apart = layers.DisentangledSelfAttention(3, positions=vectors, shares_projections=shares, name="attention")
        apart.build(hidden.shape)
        randomise(apart)
        prefix = f"disentangled:{shares}"
        found.update({f"{prefix}:weight:{each.path.split('attention/')[-1]}": to_numpy(each) for each in apart.weights})
        found[f"{prefix}:scores"] = to_numpy(apart(hidden, MASK, return_attention_scores=True)[1])
    block = layers.TransformerEncoderBlock(3, 11, normalize_first=True, activation="gelu_tanh")
    block.build(hidden.shape)
    randomise(block)
    found["block"] = to_numpy(block(hidden, MASK))
    block.rematerialize = True  # with dropout, whose seeds are drawn before
    found["block:rematerialized"] = to_numpy(block(hidden, MASK, training=True))
    for mode in ("cls", "mean", "max"):
        found[f"pooling:{mode}"] = to_numpy(layers.SequencePooling(mode)(hidden, MASK))
    found["scalar_mix"] = to_numpy(layers.ScalarMix()(hidden))
    for name in ("gelu_erf", "gelu_tanh"):
        found[name] = to_numpy(getattr(layers, name)(hidden))


def gpu_kernels(found):
    """How often JAX calls cuDNN's attention, forward and backward, in a training step compiled for an Nvidia GPU."""
    import jax
    import keras
    from jax._src.cudnn import fused_attention_stablehlo as cudnn

    block = layers.TransformerEncoderBlock(3, 11, attention_dropout=0.0, dropout=0.0, dtype="mixed_bfloat16")
    block.build((2, None, 48))
    block.rematerialize = True  # what has no gradient then shows outside of Keras, which would catch it
    weights = [weight.value for weight in block.trainable_variables]
    for name, length, first in (("even", 6, False), ("odd", 7, False), ("first", 6, True)):

        def loss(weights, hidden, mask, first=first):
            outputs, _ = block.stateless_call(weights, [], hidden, mask, first_token_only=first, training=True)
            return keras.ops.sum(outputs)

        with (  # what JAX queries from the machine, which need not have a GPU for this
            mock.patch.object(cudnn, "check_cudnn_version", return_value=91_000),
            mock.patch.object(cudnn, "check_compute_capability", return_value=True),
            mock.patch.object(cudnn, "is_cuda_compute_capability_equal", return_value=False),
        ):
            traced = jax.jit(jax.grad(loss)).trace(weights, np.zeros((2, length, 48), "float32"), MASK[:2, :length])
            program = traced.lower(lowering_platforms=("cuda",)).as_text()
        calls = [program.count(f"@__cudnn$fmhaScaleBiasSoftmax{direction}(") for direction in ("", "Backward")]
        found[f"kernels:{name}"] = np.array(calls)


def training(found):
    """One compiled step with dropout; every weight must move and stay finite."""
    import keras

    config = keras_bert_layers.BertConfig(
        vocabulary_size=29, hidden_dim=12, num_layers=1, num_heads=3, intermediate_dim=20, num_segments=4
    )
    backbone = keras_bert_layers.BertBackbone(config)
    randomise(backbone)
    logits = layers.ClassificationHead(5)(backbone.output["pooled_output"])
    model = keras.Model(backbone.input, logits)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    before = model.get_weights()
    history = model.fit(inputs(), np.array([0, 3, 1]), epochs=1, verbose=0)
    found["training:loss"] = np.array(history.history["loss"])
    moved = [np.abs(new - old).max() for new, old in zip(model.get_weights(), before, strict=True)]
    found["training:moved"] = np.array(moved)


def pretraining(found):
    """Both heads of pretraining on a backbone: compiled outputs, one step, and a file that keeps the matrix tied."""
    import keras

    config = keras_bert_layers.BertConfig(
        vocabulary_size=29, hidden_dim=12, num_layers=1, num_heads=3, intermediate_dim=20, num_segments=4, dropout=0.0
    )
    backbone = keras_bert_layers.BertBackbone(config)
    positions = keras.Input((None,), dtype="int32", name="mask_positions")
    hidden = backbone(backbone.input)
    outputs = {
        "masked": layers.MaskedLMHead(backbone, name="masked")(hidden["sequence_output"], positions),
        "next": layers.NextSentenceHead(name="next")(hidden["pooled_output"]),
    }
    model = keras.Model({**backbone.input, "mask_positions": positions}, outputs)
    randomise(model)
    found.update({f"pretraining:weight:{weight.path}": to_numpy(weight) for weight in model.weights})
    given = {**inputs(), "mask_positions": np.array([[6, 0], [3, 3], [1, 0]], "int32")}
    found.update({f"pretraining:{key}": value for key, value in model.predict(given, verbose=0).items()})
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    before = model.get_weights()
    model.fit(given, {"masked": np.array([[3, 1], [0, 28], [7, 7]]), "next": np.array([0, 1, 0])}, verbose=0)
    moved = [np.abs(new - old).max() for new, old in zip(model.get_weights(), before, strict=True)]
    found["pretraining:moved"] = np.array(moved)
    return model, given


def tied_file(found, model, given):
    import keras

    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.keras")
        loaded = keras.models.load_model(Path(folder) / "model.keras")
    expected, values = model.predict(given, verbose=0), loaded.predict(given, verbose=0)
    found["pretraining:loaded"] = np.array([np.abs(values[key] - expected[key]).max() for key in expected])


def wrong_id(found):
    """An id out of range raises or gives NaN, and never picks another row."""
    for name, token in (("negative", -1), ("large", 17)):
        embedding = layers.BertEmbedding(17, 7)
        try:
            found[f"wrong:{name}"] = to_numpy(embedding(np.array([[3, token]], "int32")))[0, 1]
        except Exception:  # each backend has its own class
            found[f"wrong:{name}"] = np.full(7, np.nan)


def dual_encoder(found):
    """The loss of queries and documents where the last row repeats the first one's document; one step of training."""
    config = keras_bert_layers.BertConfig(
        vocabulary_size=29, hidden_dim=12, num_layers=1, num_heads=3, intermediate_dim=20, num_segments=4
    )
    encoder = keras_bert_layers.BertDualEncoder(keras_bert_layers.BertBackbone(config), symmetric=True)
    randomise(encoder)
    rows = {key: value[[0, 1, 0]] for key, value in inputs().items()}
    data = {"query": inputs(), "document": rows}
    found.update({f"dual:{side}": to_numpy(vectors) for side, vectors in in_one_program(encoder, data).items()})
    texts = np.array([[0, 1], [2, 3], [4, 1]], "int32")
    found["dual:loss"] = np.array(encoder.test_on_batch(data, {"texts": texts})[0])
    found["dual:training"] = np.array(encoder.train_on_batch(data, {"texts": texts}))


def sparse_encoder(found):
    """Two pairs of texts: their weights, and two steps of training without a change, the second one with a penalty."""
    import keras

    sizes = {"hidden_dim": 12, "num_layers": 1, "num_heads": 3, "intermediate_dim": 20, "num_segments": 4}
    config = keras_bert_layers.BertConfig(vocabulary_size=29, dropout=0.0, attention_dropout=0.0, **sizes)
    options = {"query_penalty": 0.5, "document_penalty": 0.25, "warmup_steps": 2}
    encoder = keras_bert_layers.BertSparseEncoder(keras_bert_layers.BertBackbone(config), **options)
    randomise(encoder)
    encoder.compile(keras.optimizers.SGD(0.0))
    rows = {key: value[[0, 1, 1, 0]] for key, value in inputs().items()}
    rows["token_ids"][3] = rows["token_ids"][3, ::-1]
    found["sparse:weights"] = to_numpy(in_one_program(encoder, rows))
    for step in range(2):
        encoder.reset_metrics()
        logs = encoder.train_on_batch(rows, {"texts": np.array([[0, 1], [2, 3]], "int32")}, return_dict=True)
        found.update({f"sparse:{name}:{step}": np.array(value) for name, value in logs.items()})


def token_classifier(found):
    """The loss of a field over tags with gaps, and one step of training, which must move all of its weights."""
    config = keras_bert_layers.BertConfig(
        vocabulary_size=29, hidden_dim=12, num_layers=1, num_heads=3, intermediate_dim=20, num_segments=4
    )
    names = ["O", "B-a", "I-a"]
    classifier = keras_bert_layers.BertTokenClassifier(keras_bert_layers.BertBackbone(config), names, crf=True)
    randomise(classifier)
    tags = np.array([[-100, 1, 2, -100, 2, 0, -100], [1, 0, 0, 1, -100, -100, -100], [-100] * 7], "int32")
    found["tags:given"] = tags
    found["tags:logits"] = to_numpy(in_one_program(classifier, inputs()))
    before = [to_numpy(weight) for weight in classifier.crf.weights]
    found.update({f"tags:{weight.name}": values for weight, values in zip(classifier.crf.weights, before, strict=True)})
    found["tags:loss"], found["tags:f1"] = map(np.array, classifier.test_on_batch(inputs(), tags))
    classifier.fit(inputs(), tags, epochs=1, verbose=0)
    after = [to_numpy(weight) for weight in classifier.crf.weights]
    found["tags:moved"] = np.array([np.abs(new - old).max() for new, old in zip(after, before, strict=True)])


def read_outputs(found):
    """How often tasks run the encoder's last block in eager calls, and their outputs beside those of their parts."""
    config = keras_bert_layers.BertConfig(
        vocabulary_size=29, hidden_dim=12, num_layers=2, num_heads=3, intermediate_dim=20, num_segments=4
    )
    backbone = keras_bert_layers.BertBackbone(config)
    tasks = {
        "pooled_output": keras_bert_layers.BertClassifier(backbone, 3),
        "sequence_output": keras_bert_layers.BertTokenClassifier(backbone, ["O", "a"]),
    }
    block, calls = backbone.blocks[-1], []
    run = block.call
    block.call = lambda *args, **kwargs: calls.append(1) or run(*args, **kwargs)
    for output, task in tasks.items():
        randomise(task)
        expected = task.layers[-1](backbone(inputs())[output])
        calls.clear()
        found[f"read:{output}"] = to_numpy(task(inputs())) - to_numpy(expected)
        found[f"read:{output}:calls"] = np.array(len(calls))


def relative(found):
    """Without segments, and with positions that skip padding."""
    sizes = {"vocabulary_size": 29, "hidden_dim": 12, "num_layers": 1, "num_heads": 3, "intermediate_dim": 20}
    options = {"max_sequence_length": 11, "num_segments": 0, "position_offset": 2, "pooler_activation": "relu"}
    backbone = keras_bert_layers.BertBackbone(keras_bert_layers.BertConfig(**sizes, **options))
    randomise(backbone)
    found.update({f"relative:weight:{weight.path}": to_numpy(weight) for weight in backbone.weights})
    found.update({f"relative:{key}": to_numpy(value) for key, value in in_one_program(backbone, inputs()).items()})


def packed_rows(found):
    """Two texts in one row, and each in a row of its own: outputs, and the change by a step with a masked-LM head."""
    import keras

    # Three rows of seven, as elsewhere: what is compiled for each shape then is there.
    texts, rows = np.zeros((2, 3, 7), "int32")
    texts[0], rows[0, :3], rows[1, :3] = [1, 1, 1, 2, 2, 2, 0], 1, 1
    ids = np.random.default_rng(9).integers(2, 29, 6).astype("int32")
    packed, apart = np.zeros((2, 3, 7), "int32")
    packed[texts > 0] = apart[rows > 0] = ids
    masked = {"packed": np.array([[1, 2, 4, 5]], "int32"), "apart": np.array([[1, 2], [1, 2]], "int32")}
    sizes = {"vocabulary_size": 29, "hidden_dim": 12, "num_layers": 2, "num_heads": 3, "intermediate_dim": 20}
    sizes |= {"position_offset": 2, "dropout": 0.0, "attention_dropout": 0.0}
    for name, token_ids, mask in (("packed", packed, texts), ("apart", apart, rows)):
        backbone = keras_bert_layers.BertBackbone(keras_bert_layers.BertConfig(**sizes))
        positions = keras.Input((None,), dtype="int32", name="mask_positions")
        logits = layers.MaskedLMHead(backbone)(backbone.output["sequence_output"], positions)
        model = keras.Model({**backbone.input, "mask_positions": positions}, logits)
        randomise(model)
        backbone.packed_rows = name == "packed"
        given = {"token_ids": token_ids, "segment_ids": 0 * token_ids, "padding_mask": mask}
        found[f"packed:{name}:eager"] = to_numpy(backbone(given)["sequence_output"])[mask > 0]
        given = {key: value[: len(masked[name])] for key, value in given.items()} | {"mask_positions": masked[name]}
        model.compile(
            keras.optimizers.SGD(1.0), keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")
        )
        model.train_on_batch(given, np.array([3, 1, 28, 7]).reshape(masked[name].shape))
        found[f"packed:{name}:trained"] = np.concatenate([value.ravel() for value in model.get_weights()])


PARTS = {
    "rotary": {"positions": layers.RotaryPositions(base=100.0), "feed_forward": layers.GatedFeedForward(9)},
    "relative": {"positions": layers.RelativePositionBias(num_buckets=8, max_distance=5), "causal": True},
}


def encoder_parts(found):
    """Encoders of parts that are not BERT's, and a compiled step of training."""
    import keras

    sizes = {"vocabulary_size": 29, "hidden_dim": 12, "num_layers": 2, "num_heads": 3, "intermediate_dim": 20}
    for name, parts in PARTS.items():
        config = keras_bert_layers.BertConfig(**sizes, num_segments=4)
        backbone = keras_bert_layers.BertBackbone(config, parts=layers.EncoderParts(normalize_first=True, **parts))
        randomise(backbone)
        found.update({f"parts:{name}:weight:{weight.path}": to_numpy(weight) for weight in backbone.weights})
        found[f"parts:{name}"] = to_numpy(in_one_program(backbone, inputs())["sequence_output"])
    model = keras.Model(backbone.input, backbone.output["sequence_output"])
    model.compile("sgd", "mse")
    model.train_on_batch(inputs(), np.ones((3, 7, 12), "float32"))
    trained = {weight.path: to_numpy(weight) for weight in model.trainable_weights if "pooler" not in weight.path}
    moved = [np.abs(new - found[f"parts:relative:weight:{path}"]).max() for path, new in trained.items()]
    found["parts:moved"] = np.array(moved)


def torch_products(found):
    """A dense layer's product by either library: outputs, gradients, and the gradients of these."""
    import torch

    from keras_bert_layers.layers import products

    generator = np.random.default_rng(5)
    shapes = {"inputs": (2, 5, 12), "kernel": (12, 7), "bias": (7,), "weights": (2, 5, 7)}
    given = {name: generator.normal(size=shape).astype("float32") for name, shape in shapes.items()}
    found.update({f"product:{name}": values for name, values in given.items()})
    for way in ("mkl", "onednn"):
        products.mkl_is_slow = lambda way=way: way == "onednn"
        inputs, kernel, bias = (torch.tensor(given[name], requires_grad=True) for name in ("inputs", "kernel", "bias"))
        outputs = products.product(inputs, kernel, bias)
        loss = (outputs.square() * torch.tensor(given["weights"])).sum()
        gradients = torch.autograd.grad(loss, [inputs, kernel, bias], create_graph=True)
        again = torch.autograd.grad(sum(each.square().sum() for each in gradients), [inputs, kernel])
        made_by = type(products.product(inputs, kernel).grad_fn).__name__
        values = {"outputs": outputs, "inputs": gradients[0], "kernel": gradients[1], "bias": gradients[2]}
        values |= {"again:inputs": again[0], "again:kernel": again[1]}
        values |= {"none": products.product(inputs[:0], kernel), "transposed": products.product(bias[None], kernel.t())}
        found.update({f"product:{way}:{name}": value.detach().numpy() for name, value in values.items()})
        found[f"product:{way}:made_by"] = made_by
        kinds = {"half": inputs.bfloat16(), "one": inputs[0, 0]}
        found[f"product:{way}:others"] = [
            type(products.product(kind, kernel.to(kind.dtype)).grad_fn).__name__ for kind in kinds.values()
        ]


def main(path):
    found = {}
    backbone = backbone_outputs(found)
    layer_outputs(found)
    training(found)
    pretrained = pretraining(found)
    dual_encoder(found)
    sparse_encoder(found)
    token_classifier(found)
    read_outputs(found)
    wrong_id(found)
    relative(found)
    packed_rows(found)
    google_files(found, backbone)
    backend = os.environ["KERAS_BACKEND"]
    if backend != "tensorflow" and any(name.split(".")[0].startswith("tensorflow") for name in sys.modules):
        sys.exit(f"TensorFlow was imported on the backend {backend}.")
    if backend == "jax":
        gpu_kernels(found)
    if backend == "torch":
        torch_products(found)
    # Last: where TensorFlow is installed, Keras itself imports it for the config of a layer.
    encoder_parts(found)
    saving(found, backbone)
    tied_file(found, *pretrained)
    np.savez(path, **found)


if __name__ == "__main__":
    main(sys.argv[1])
