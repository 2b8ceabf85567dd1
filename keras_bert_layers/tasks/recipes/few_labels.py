"""Classifiers with few labels or none: contrastive training of a sentence encoder, and natural language inference."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks, keras_models
from keras_bert_layers._internal.types import Labels, Strings
from keras_bert_layers.optimizers import WarmupLinearDecay, adamw
from keras_bert_layers.tasks.classifier import BertClassifier
from keras_bert_layers.tasks.feeding.columns import as_array, check_takes_text
from keras_bert_layers.tasks.labels.calibration import sigmoid, softmax
from keras_bert_layers.tasks.labels.classes import as_text
from keras_bert_layers.tasks.sentence_encoder import BertSentenceEncoder

_FEW_SHOT, _ZERO_SHOT = "few_shot_classifier", "zero_shot"
_SEVERAL = "multi_label_classification"
# A gradient of the summed loss below this leaves probabilities as they are in float32.
_SMALL_GRADIENT, _MAX_STEPS = 1e-4, 5000


def few_shot_classifier(
    encoder: BertSentenceEncoder,
    texts: Strings,
    labels: Labels,
    *,
    class_names: Sequence[str] | None = None,
    problem_type: str = "single_label_classification",
    num_pairs: int | None = None,
    batch_size: int = 16,
    learning_rate: float = 2e-5,
    seed: int = 0,
    verbose: str | int = 0,
) -> BertClassifier:
    """Trains a classifier on few labeled texts, 8 to 64 of each class, from a sentence encoder (SetFit).

    A copy of the encoder learns from pairs of the texts: the cosine of two texts of one class shall be 1, that of two
    texts of different classes 0. A logistic regression on its vectors is then fitted to convergence, and becomes the
    dense layer of a `BertClassifier` that pools as the encoder does. Equal arguments give equal weights on one machine.

    Args:
        encoder: a `BertSentenceEncoder` with a preprocessor; it stays as it is.
        texts: a list, array or column of strings.
        labels: one label per text, as `BertClassifier.fit` takes them.
        class_names: one name per class; None takes the sorted labels if they are strings.
        problem_type: `"single_label_classification"` or `"multi_label_classification"`. Texts with several labels
            count as alike if they share one.
        num_pairs: how many pairs are drawn, half of them alike; 0 trains only the dense layer. None is 40 for each
            text, and at most 2,560.
        batch_size: pairs per step.
        learning_rate: the peak of the learning rate of AdamW, reached after a tenth of the steps.
        seed: draws the pairs and the dropout.
        verbose: as in `fit`.

    Returns:
        A new classifier with class names, or with integers where labels are. Its probabilities are cautious, as those
        of a regularized regression; `calibrate` corrects them.

    Raises:
        TypeError: not a `BertSentenceEncoder`; labels of another kind.
        ValueError: an encoder without a preprocessor, with a default prompt, a dense layer, cut vectors or LoRA; a
            regression; fewer than two classes; what `BertClassifier.fit` refuses.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=6, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog"])
        >>> encoder = kbl.BertSentenceEncoder(kbl.BertBackbone(config), preprocessor=kbl.BertPreprocessor(tokenizer))
        >>> texts, labels = ["cat", "cat cat", "dog", "dog dog"], ["cats", "cats", "dogs", "dogs"]
        >>> classifier = few_shot_classifier(encoder, texts, labels, num_pairs=8)
        >>> classifier.class_names, classifier.predict(["a dog"], verbose=0).shape
        (['cats', 'dogs'], (1, 2))

    References:
        Tunstall et al. 2022, Efficient Few-Shot Learning Without Prompts, arXiv:2209.11055, section 3.
    """
    _check_encoder(encoder)
    checks.one_of(_FEW_SHOT, "problem_type", problem_type, ("single_label_classification", _SEVERAL))
    checks.optional(checks.whole_number, _FEW_SHOT, "num_pairs", num_pairs)
    checks.positive_integer(_FEW_SHOT, "batch_size", batch_size)
    trained = keras_models.rebuild(encoder, encoder.get_config(), (), np.asarray)
    classifier = BertClassifier(
        trained.backbone,
        **_classes(labels, class_names, problem_type == _SEVERAL),
        problem_type=problem_type,
        preprocessor=encoder.preprocessor,
        pairs=False,
        pooling=encoder.pooling,
        normalize=encoder.normalize,
    )
    columns, y, _ = classifier.pipeline.batches.checked(texts, labels, None)
    columns, y = np.asarray(columns), np.asarray(y)
    y = np.eye(classifier.num_classes)[y.astype(int)] if y.ndim == 1 else y.astype(np.float64)
    num_pairs = min(40 * len(y), 2560) if num_pairs is None else num_pairs
    if num_pairs:
        random = np.random.default_rng(seed)
        first, second, alike = _pairs(y > 0.5, num_pairs, random)
        for variable in trained.variables:
            if variable.name == "seed_generator_state":
                variable.assign(random.integers(2**31, size=variable.shape))
        num_steps = -(-len(first) // batch_size)
        rate = WarmupLinearDecay(learning_rate, num_steps, num_warmup_steps=num_steps // 10)
        trained.compile(adamw(rate), metrics=None)
        trained.fit((columns[first], columns[second]), alike, batch_size=batch_size, shuffle=False, verbose=verbose)
    weights = _regression(trained.predict(columns, verbose=0), y, sigmoid if problem_type == _SEVERAL else softmax)
    classifier.get_layer("classification_head").dense.set_weights([weights[:-1], weights[-1]])
    return classifier


def _check_encoder(encoder: keras.layers.Layer) -> None:
    """Refuses what is not a sentence encoder, or one whose vectors a classifier does not make."""
    checks.instance(_FEW_SHOT, "encoder", encoder, BertSentenceEncoder, "`load_task(source, 'sentence_encoder')`.")
    check_takes_text(encoder)
    for name in ("projection_dim", "truncate_dim", "default_prompt", "backbone.lora_rank"):
        if (value := operator.attrgetter(name)(encoder)) is not None:
            cure = "Make an encoder without it: `BertSentenceEncoder(load_backbone(source), preprocessor=...)`."
            raise ValueError(checks.message(_FEW_SHOT, f"encoder.{name}", "be None", value, cure))


def _classes(labels: Any, class_names: Sequence[str] | None, several: bool) -> dict[str, Any]:
    """The arguments `class_names` and `num_classes` of the classifier, from the labels where names are not given."""
    if class_names is not None:
        return {"class_names": class_names}
    # NumPy makes the string "nan" of a missing label among strings.
    rows = list(labels) if isinstance(labels, list | tuple) else as_array(labels).tolist()
    flat = {as_text(label) for label in (itertools.chain.from_iterable(rows) if several else rows)}
    if all(isinstance(label, str) for label in flat):
        return {"class_names": sorted(flat)}
    wrong = [label for label in flat if not (isinstance(label, Real) and float(label).is_integer())]
    if wrong:
        rule = "hold strings, or integers from 0 on"
        raise ValueError(checks.message(_FEW_SHOT, "labels", rule, wrong[0], "No label may be missing."))
    return {"num_classes": len(rows[0]) if several else int(max(flat)) + 1}


def _pairs(members: np.ndarray, num_pairs: int, random: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Rows of first and of second texts, and 1 or 0: alike or not, in turn; each text is first about equally often.

    Args:
        members: bool `(texts, classes)`.
        num_pairs: how many to draw; fewer are returned if a text is like no other, or like all.
        random: draws them.
    """
    drawn = []
    orders = (row for _ in itertools.count() for row in random.permutation(len(members)))
    for number, first in enumerate(itertools.islice(orders, num_pairs)):
        alike = (members & members[first]).any(axis=1)
        found = np.setdiff1d(np.flatnonzero(alike == number % 2), first)
        if len(found):
            drawn.append((first, random.choice(found), number % 2))
    if len({is_alike for *_, is_alike in drawn}) < 2:
        shown = checks.Shown(f"{len(members)} texts of {members.any(axis=0).sum()} classes")
        raise ValueError(checks.message(_FEW_SHOT, "labels", "hold at least two classes, and two texts of one", shown))
    return tuple(np.array(drawn).T)


def _regression(vectors: np.ndarray, y: np.ndarray, link: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Kernel and bias `(dim + 1, classes)` of a multinomial logistic regression, or of one for each class.

    Minimizes the sum of the cross entropies and half of the kernel's squares, as scikit-learn with its defaults, by
    accelerated gradient descent (Nesterov 2004, Introductory Lectures on Convex Optimization, section 2.2).

    Of two classes that exclude each other, scikit-learn has one vector of weights, which is the difference of the two
    here. These are its halves, with half of its squares in sum. So they count twice.
    """
    inputs = np.hstack([vectors, np.ones((len(vectors), 1))])
    strength = 2.0 if link is softmax and y.shape[1] == 2 else 1.0
    decay = np.r_[np.full(vectors.shape[1], strength), 0.0][:, None]  # the bias has none
    smoothness = strength + np.linalg.norm(inputs, 2) ** 2 / 2  # of the softmax; at least that of the sigmoid
    momentum = (np.sqrt(smoothness) - np.sqrt(strength)) / (np.sqrt(smoothness) + np.sqrt(strength))
    weights = before = np.zeros((inputs.shape[1], y.shape[1]))
    for _ in range(_MAX_STEPS):
        ahead = weights + momentum * (weights - before)
        gradient = inputs.T @ (link(inputs @ ahead) - y) + decay * ahead
        before, weights = weights, ahead - gradient / smoothness
        if np.abs(gradient).max() < _SMALL_GRADIENT:
            break
    return weights


def zero_shot(
    classifier: BertClassifier,
    texts: Strings,
    candidate_labels: Sequence[str],
    hypothesis: str = "This example is {}.",
    *,
    multi_label: bool = False,
    entailment: str = "entailment",
    contradiction: str = "contradiction",
    verbose: str | int = 0,
) -> np.ndarray:
    """Classifies texts into classes that are only named, with a classifier of natural language inference.

    Each text is a premise, and each label makes a hypothesis. The probabilities of the labels are the softmax of their
    entailment logits. With `multi_label`, or for a single label, that of a label is the softmax of its own entailment
    and contradiction logits. The pipeline "zero-shot-classification" of transformers gives the same numbers.

    Args:
        classifier: a `BertClassifier` of pairs that tells entailment from contradiction, with a preprocessor.
        texts: a list, array or column of strings, or one string.
        candidate_labels: words or phrases, one for each class.
        hypothesis: a sentence with `{}` in the place of the label.
        multi_label: whether several labels may be right at once.
        entailment: the name of the class of entailment, in small or capital letters; `"0"`, `"1"` and so on for a
            classifier without names.
        contradiction: that of contradiction; read only with `multi_label` or for a single label.
        verbose: as in `predict`.

    Returns:
        Float32 `(texts, labels)`; `(labels,)` for one string.

    Raises:
        TypeError: not a `BertClassifier`; labels that are not strings.
        ValueError: no labels, or one twice; a hypothesis without `{}`; a class that the classifier does not have; what
            `predict` refuses.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=6, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog"])
        >>> names = ["contradiction", "neutral", "entailment"]  # random weights, in place of a trained checkpoint
        >>> classifier = kbl.BertClassifier(
        ...     kbl.BertBackbone(config), class_names=names, preprocessor=kbl.BertPreprocessor(tokenizer), pairs=True
        ... )
        >>> zero_shot(classifier, ["a cat", "a dog", "a tree"], ["animals", "plants"]).shape
        (3, 2)

    References:
        Yin et al. 2019, Benchmarking Zero-shot Text Classification, arXiv:1909.00161, section 5.
    """
    checks.instance(_ZERO_SHOT, "classifier", classifier, BertClassifier)
    check_takes_text(classifier)
    names = list(checks.ordered(_ZERO_SHOT, "candidate_labels", candidate_labels))
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError(checks.message(_ZERO_SHOT, "candidate_labels", "be different strings, at least one", names))
    if "{}" not in checks.instance(_ZERO_SHOT, "hypothesis", hypothesis, str):
        raise ValueError(checks.message(_ZERO_SHOT, "hypothesis", "hold {} in the place of the label", hypothesis))
    multi_label = checks.boolean(_ZERO_SHOT, "multi_label", multi_label) or len(names) == 1
    columns = [_index(classifier, "entailment", entailment)]
    columns += [_index(classifier, "contradiction", contradiction)] if multi_label else []
    rows = [texts] if isinstance(texts, str | bytes) else list(texts)
    premises = [text for text in rows for _ in names]
    hypotheses = [hypothesis.replace("{}", name) for name in names] * len(rows)
    logits = classifier.predict((premises, hypotheses), verbose=verbose)[:, columns]
    logits = logits.reshape(len(rows), len(names), len(columns))  # [B, labels, 1 or 2]
    probabilities = softmax(logits)[..., 0] if multi_label else softmax(logits[..., 0])
    return probabilities[0] if isinstance(texts, str | bytes) else probabilities


def _index(classifier: BertClassifier, argument: str, name: str) -> int:
    """The index of a class, whose name may be in small or capital letters."""
    names = [known.casefold() for known in classifier.label_kind.answers]
    cure = "Give the name that this class has, or set `classifier.class_names`."
    return names.index(checks.one_of(_ZERO_SHOT, argument, str(name).casefold(), names, cure))
