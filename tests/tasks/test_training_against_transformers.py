"""Some steps of fine-tuning, beside transformers + torch: without dropout, the losses are the same numbers."""

import json
import shutil

import numpy as np
import pytest

from keras_bert_layers import load_preprocessor, load_task
from keras_bert_layers.optimizers import WarmupLinearDecay, adamw

pytestmark = pytest.mark.peers

NUM_STEPS = 8
NUM_WARMUP_STEPS = 2
BATCH_SIZE = 6
PEAK_RATE = 5e-5
WORDS = "the film is a warm dull funny slow bright night with actors who laugh and weep for hours".split()
# Two float32 implementations that start from equal weights. Measured: 1.2e-7, and 4.5e-7 over 40 steps. With epsilon
# where Keras has it, before the bias correction: 1e-4.
TOLERANCE = 2e-6


@pytest.fixture
def weights(minilm, tmp_path):
    """MiniLM without dropout, which no two libraries draw alike."""
    shutil.copytree(minilm, tmp_path / "weights")
    config = json.loads((minilm / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "classifier_dropout": 0.0}
    (tmp_path / "weights" / "config.json").write_text(json.dumps(config))
    return tmp_path / "weights"


@pytest.fixture
def data():
    generator = np.random.default_rng(3)
    texts = [" ".join(generator.choice(WORDS, generator.integers(2, 20))) for _ in range(NUM_STEPS * BATCH_SIZE)]
    return texts, ["dull" in text for text in texts]


@pytest.fixture
def head():
    return np.random.default_rng(5).normal(0, 0.02, (384, 2)).astype("float32")


def torch_losses(weights, data, head):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(weights)
    model = transformers.BertForSequenceClassification.from_pretrained(weights, num_labels=2).train()
    with torch.no_grad():
        model.classifier.weight.copy_(torch.from_numpy(head.T))
        model.classifier.bias.zero_()
    groups = {True: [], False: []}
    for name, parameter in model.named_parameters():
        groups[name.endswith("bias") or "LayerNorm" in name].append(parameter)
    optimizer = torch.optim.AdamW(
        [{"params": groups[False], "weight_decay": 0.01}, {"params": groups[True], "weight_decay": 0.0}],
        lr=PEAK_RATE,
        eps=1e-8,
    )
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, NUM_WARMUP_STEPS, NUM_STEPS)
    losses = []
    for first in range(0, len(data[0]), BATCH_SIZE):
        rows = slice(first, first + BATCH_SIZE)
        inputs = tokenizer(data[0][rows], padding=True, return_tensors="pt")
        loss = model(**inputs, labels=torch.tensor(data[1][rows]).long()).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def our_losses(weights, data, head):
    classifier = load_task(
        weights, task="classifier", num_classes=2, preprocessor=load_preprocessor(weights, max_length=64)
    )
    classifier.get_layer("classification_head").dense.kernel.assign(head)
    classifier.compile(adamw(WarmupLinearDecay(PEAK_RATE, NUM_STEPS, num_warmup_steps=NUM_WARMUP_STEPS)), metrics=[])
    losses = []
    for first in range(0, len(data[0]), BATCH_SIZE):
        rows = slice(first, first + BATCH_SIZE)
        labels = [int(label) for label in data[1][rows]]
        losses += classifier.fit(data[0][rows], labels, shuffle=False, verbose=0).history["loss"]
    return losses


def test_losses_are_equal(weights, data, head):
    np.testing.assert_allclose(our_losses(weights, data, head), torch_losses(weights, data, head), atol=TOLERANCE)
