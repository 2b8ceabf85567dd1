"""The heads of pretraining against `BertForPreTraining` and `BertForMaskedLM` of transformers, with equal weights."""

import copy

import keras
import numpy as np
import pytest

from keras_bert_layers import BertMaskedLM, BertPretrainer, load_backbone
from keras_bert_layers.checkpoints import config_from_huggingface

pytestmark = pytest.mark.peers

# What two float32 implementations of three blocks and a head may differ by; the project's promise.
TOLERANCE = 2e-5
# A mean of logarithms of those.
LOSS_TOLERANCE = 1e-5
# What these grow to in a few steps of training.
TRAINED_TOLERANCE = 1e-4
SIZES = {
    "vocab_size": 61,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 50,
    "max_position_embeddings": 19,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "initializer_range": 0.4,  # the usual 0.02 would leave every logit near its bias, and errors unseen
}
POSITIONS = np.array([[18, 3, 7], [1, 5, 0], [0, 0, 0], [11, 2, 0]], "int32")
WEIGHTS = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0], [1, 1, 0]], "float32")
IS_RANDOM = np.array([0, 1, 1, 0])


@pytest.fixture(scope="module")
def inputs():
    rng = np.random.default_rng(4)
    mask = np.arange(19) < np.array([[19], [7], [1], [12]])
    return {
        "token_ids": rng.integers(0, 61, mask.shape) * mask,
        "segment_ids": rng.integers(0, 2, mask.shape) * mask,
        "padding_mask": mask.astype("int32"),
        "mask_positions": POSITIONS,
    }


@pytest.fixture(scope="module", params=["gelu", "gelu_new"])
def model(request, torch, transformers):
    """Random weights, those of norms and biases too: fresh ones are 1 and 0 and hide what is swapped."""
    torch.manual_seed(3)
    config = transformers.BertConfig(**SIZES, hidden_act=request.param, layer_norm_eps=1e-6)
    model = transformers.BertForPreTraining(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.copy_(torch.randn_like(parameter) * 0.3 + parameter)
    return model.eval()


@pytest.fixture(scope="module")
def directory(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("peer")
    model.save_pretrained(path)
    return path


def labels_for_torch(torch, answers):
    """-100 where nothing is to be predicted, as transformers wants it."""
    labels = np.full((4, 19), -100)
    for row, (positions, weights) in enumerate(zip(POSITIONS, WEIGHTS, strict=True)):
        labels[row, positions[weights > 0]] = answers[row, weights > 0]
    return torch.tensor(labels)


def named(torch, inputs):
    names = {"token_ids": "input_ids", "segment_ids": "token_type_ids", "padding_mask": "attention_mask"}
    return {theirs: torch.tensor(inputs[ours]) for ours, theirs in names.items()}


def ask(torch, model, inputs, **kwargs):
    with torch.no_grad():
        return model(**named(torch, inputs), **kwargs)


def copy_heads(model, task):
    """Gives a task the heads of a model of transformers."""
    theirs = {name: value.numpy() for name, value in model.state_dict().items() if name.startswith("cls.")}
    head = task.get_layer("masked_lm_head")
    head.dense.kernel.assign(theirs["cls.predictions.transform.dense.weight"].T)
    head.dense.bias.assign(theirs["cls.predictions.transform.dense.bias"])
    head.layer_norm.gamma.assign(theirs["cls.predictions.transform.LayerNorm.weight"])
    head.layer_norm.beta.assign(theirs["cls.predictions.transform.LayerNorm.bias"])
    head.bias.assign(theirs["cls.predictions.bias"])
    if isinstance(task, BertPretrainer):
        pair = task.get_layer("next_sentence_head").dense
        pair.kernel.assign(theirs["cls.seq_relationship.weight"].T)
        pair.bias.assign(theirs["cls.seq_relationship.bias"])
    return task


def test_pretraining(torch, model, directory, inputs):
    task = copy_heads(model, BertPretrainer(load_backbone(directory)))
    answers = np.random.default_rng(5).integers(0, 61, POSITIONS.shape)
    labels = labels_for_torch(torch, answers)
    expected = ask(torch, model, inputs, labels=labels, next_sentence_label=torch.tensor(IS_RANDOM))
    found = task.predict(inputs, verbose=0)
    logits = np.take_along_axis(expected.prediction_logits.numpy(), POSITIONS[..., None], axis=1)
    np.testing.assert_allclose(found["masked_lm"], logits, atol=TOLERANCE, rtol=TOLERANCE)
    np.testing.assert_allclose(
        found["next_sentence"], expected.seq_relationship_logits.numpy(), atol=TOLERANCE, rtol=TOLERANCE
    )
    result = task.test_on_batch(
        inputs,
        {"masked_lm": answers, "next_sentence": IS_RANDOM},
        {"masked_lm": WEIGHTS, "next_sentence": np.ones(4)},
        return_dict=True,
    )
    assert result["loss"] == pytest.approx(float(expected.loss), rel=LOSS_TOLERANCE)


def test_masked_lm(torch, transformers, model, directory, inputs):
    peer = transformers.BertForMaskedLM.from_pretrained(directory).eval()
    config = config_from_huggingface(model.config.to_dict())
    assert config.activation == {"gelu": "gelu_erf", "gelu_new": "gelu_tanh"}[model.config.hidden_act]
    task = copy_heads(peer, BertMaskedLM(load_backbone(directory)))
    answers = np.random.default_rng(5).integers(0, 61, POSITIONS.shape)
    expected = ask(torch, peer, inputs, labels=labels_for_torch(torch, answers))
    logits = np.take_along_axis(expected.logits.numpy(), POSITIONS[..., None], axis=1)
    np.testing.assert_allclose(task.predict(inputs, verbose=0), logits, atol=TOLERANCE, rtol=TOLERANCE)
    result = task.test_on_batch(inputs, answers, WEIGHTS, return_dict=True)
    assert result["loss"] == pytest.approx(float(expected.loss), rel=LOSS_TOLERANCE)


def test_training_goes_the_same_way(torch, model, directory, inputs):
    """The gradients of the tied matrix too, which come from both of its ends."""
    task = copy_heads(model, BertPretrainer(load_backbone(directory)))
    task.compile(optimizer=keras.optimizers.SGD(0.02))
    answers = np.random.default_rng(5).integers(0, 61, POSITIONS.shape)
    given = {"labels": labels_for_torch(torch, answers), "next_sentence_label": torch.tensor(IS_RANDOM)}
    peer = copy.deepcopy(model)
    optimizer = torch.optim.SGD(peer.parameters(), 0.02)
    expected, found = [], []
    for _ in range(6):
        loss = peer(**named(torch, inputs), **given).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        expected.append(loss.item())
        y, weights = (
            {"masked_lm": answers, "next_sentence": IS_RANDOM},
            {"masked_lm": WEIGHTS, "next_sentence": np.ones(4)},
        )
        task.reset_metrics()
        found.append(task.train_on_batch(inputs, y, weights, return_dict=True)["loss"])
    assert expected[-1] < 0.7 * expected[0]
    np.testing.assert_allclose(found, expected, rtol=TRAINED_TOLERANCE)
    matrix = peer.get_input_embeddings().weight.detach().numpy()
    trained = task.get_layer("masked_lm_head").token_embedding.token_embedding
    np.testing.assert_allclose(trained, matrix, atol=TRAINED_TOLERANCE)
