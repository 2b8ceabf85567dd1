"""Logits, losses and gradients of the heads of classes, numbers and choices, beside transformers + torch.

The weights are MiniLM's, the heads draws of equal numbers, and nothing is dropped out.
"""

import numpy as np
import pytest

from keras_bert_layers import BertClassifier, BertMultipleChoice, load_backbone, load_preprocessor
from keras_bert_layers._internal.lazy import tf

pytestmark = pytest.mark.peers

TEXTS = ["A warm, funny film.", "Two dull hours that nobody will give back.", "", "I laughed and wept."]
PAIRS = (TEXTS, ["Funny!", "The film is short.", "It is about a boat.", "He laughed."])
MULTI_HOT = [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
SCORES = [4.2, 0.4, 1.0, 3.3]
PROMPTS = ["The bridge was closed, so they", "She opened the umbrella because", "The dough had risen, so the baker"]
CHOICES = [
    ["took the ferry.", "ate the river.", "sang.", "were a bridge."],
    ["it began to rain.", "the umbrella was hungry.", "she owned a very long list of good reasons for it.", "no."],
    ["put it into the oven.", "swam.", "read it a poem.", "closed the bridge."],
]
PLACES = [0, 0, 2]
SEED = 3
# Six float32 blocks in two libraries.
LOGITS_TOLERANCE = 2e-5
LOSS_TOLERANCE = 2e-5
# Of a sum over all tokens, relative to the largest gradient of the weight.
GRADIENT_TOLERANCE = 1e-4


def draw_head(num_outputs):
    return np.random.default_rng(SEED).normal(0, 0.5, (384, num_outputs)).astype("float32")


@pytest.fixture(scope="module")
def tokenizer(transformers, minilm):
    return transformers.AutoTokenizer.from_pretrained(minilm)


def torch_results(torch, model, inputs, labels):
    """Logits, loss, and the gradients of the head, of the pooler and of the token embedding."""
    model.eval()
    with torch.no_grad():
        model.classifier.weight.copy_(torch.from_numpy(draw_head(model.classifier.out_features).T))
        model.classifier.bias.zero_()
    output = model(**inputs, labels=torch.tensor(labels))
    output.loss.backward()
    weights = model.classifier.weight, model.bert.pooler.dense.weight, model.bert.embeddings.word_embeddings.weight
    head, pooler, embedding = (weight.grad.numpy() for weight in weights)
    return output.logits.detach().numpy(), output.loss.item(), [head.T, pooler.T, embedding]


def our_results(task, texts, labels):
    """The same from one of our tasks, given raw text."""
    head = task.layers[-1].dense
    head.kernel.assign(draw_head(head.kernel.shape[-1]))
    ids, labels, _ = task.pipeline.batches.one(texts, labels)
    backbone = {weight.path: weight for weight in task.backbone.weights}
    weights = head.kernel, backbone["pooler/dense/kernel"], backbone["embedding/token_embedding"]
    with tf.GradientTape() as tape:
        logits = task(ids, training=False)
        loss = task.compute_loss(y=labels, y_pred=logits)
    gradients = tape.gradient(loss, [weight.value for weight in weights])
    return np.asarray(logits), float(loss), [np.asarray(tf.convert_to_tensor(gradient)) for gradient in gradients]


def compare(ours, theirs):
    np.testing.assert_allclose(ours[0], theirs[0], atol=LOGITS_TOLERANCE)
    assert ours[1] == pytest.approx(theirs[1], abs=LOSS_TOLERANCE)
    for our, their in zip(ours[2], theirs[2], strict=True):
        np.testing.assert_allclose(our, their, atol=GRADIENT_TOLERANCE * np.abs(their).max())


def parts(minilm):
    return {"backbone": load_backbone(minilm), "preprocessor": load_preprocessor(minilm, max_length=64)}


@pytest.mark.parametrize(
    ("problem_type", "num_classes", "labels"),
    [
        ("single_label_classification", 3, [0, 2, 1, 2]),
        ("multi_label_classification", 3, MULTI_HOT),
        ("regression", 1, SCORES),
    ],
)
def test_problem_types(torch, transformers, tokenizer, minilm, problem_type, num_classes, labels):
    model = transformers.BertForSequenceClassification.from_pretrained(
        minilm, num_labels=num_classes, problem_type=problem_type
    )
    inputs = tokenizer(*PAIRS, padding=True, return_tensors="pt")
    classifier = BertClassifier(**parts(minilm), num_classes=num_classes, problem_type=problem_type)
    compare(our_results(classifier, PAIRS, labels), torch_results(torch, model, inputs, labels))


def test_multiple_choice(torch, transformers, tokenizer, minilm):
    model = transformers.BertForMultipleChoice.from_pretrained(minilm)
    prompts = [prompt for prompt, choices in zip(PROMPTS, CHOICES, strict=True) for _ in choices]
    flat = tokenizer(prompts, [choice for choices in CHOICES for choice in choices], padding=True, return_tensors="pt")
    inputs = {name: ids.reshape(len(PROMPTS), 4, -1) for name, ids in flat.items()}
    chooser = BertMultipleChoice(**parts(minilm))
    theirs = torch_results(torch, model, inputs, PLACES)
    compare(our_results(chooser, (PROMPTS, CHOICES), PLACES), theirs)
    np.testing.assert_allclose(chooser.predict((PROMPTS, CHOICES), verbose=0), theirs[0], atol=LOGITS_TOLERANCE)
