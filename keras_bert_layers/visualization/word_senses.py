"""`WordSenses`: one word in several sentences, and how similar its hidden states are in each layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.tasks import Features
from keras_bert_layers.visualization import _colors as colors
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization.curves import layer_curves
from keras_bert_layers.visualization.picture import Picture

if TYPE_CHECKING:
    import keras

    from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer

_NOTE = "Cosines between the hidden states of the word: 1 for the same direction."


class WordSenses(Picture):
    """The hidden states of one word in several sentences: their cosines in each layer, and within senses and between.

    The output of the embedding, layer 0, is nearly the same for all of them: only the position differs. The later
    layers mix in the sentence. If the model tells senses apart, the cosines within a sense stay above those between
    senses. Compare the two within a layer, as the cosines of all words differ from layer to layer.

    The page has the sentences, a chart of the mean cosines over the layers, and the cosines of all pairs for the first
    layer, the middle one and the last.

    Args:
        word: the word.
        sentences: a sentence for each occurrence.
        vectors: float `(sentences, num_layers + 1, hidden_dim)`, the hidden states of the word.
        senses: the sense of the word in each sentence; None if they are not known.
        title: heading.
        note: what the picture shows.

    Attributes:
        cosines: float64 `(num_layers + 1, sentences, sentences)`.
        curves: name -> the mean cosine of each layer: `"same sense"` and `"other sense"`, or `"all pairs"`.

    Raises:
        ValueError: the shapes do not match; fewer than two sentences.

    Examples:
        >>> vectors = [[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]]
        >>> picture = WordSenses("bank", ["a bank", "a river bank", "the bank"], vectors, senses=["x", "x", "y"])
        >>> {name: [round(value, 2) for value in values] for name, values in picture.curves.items()}
        {'same sense': [1.0, 0.71], 'other sense': [1.0, 0.35]}

    References:
        Ethayarajh 2019, arXiv:1909.00512; Reif et al. 2019, Visualizing and measuring the geometry of BERT,
        arXiv:1906.02715, section 4.1.
    """

    def __init__(
        self, word: str, sentences: Sequence[str], vectors: Any, *, senses: Any = None, title: str = "", note: str = ""
    ):
        super().__init__(title=title or f"“{word}” in {len(sentences)} sentences", note=note or _NOTE)
        self.word, self.sentences, owner = word, list(sentences), type(self).__name__
        self.senses = None if senses is None else list(map(str, senses))
        vectors = np.asarray(vectors, np.float64)
        if vectors.ndim != 3 or len(vectors) != len(self.sentences) or len(vectors) < 2:
            rule = f"be (sentences, layers, hidden_dim) of two sentences or more, here {len(self.sentences)}"
            raise ValueError(checks.message(owner, "vectors.shape", rule, vectors.shape))
        pairs = ~np.eye(len(vectors), dtype=bool)
        groups = {"all pairs": pairs}
        if self.senses is not None:
            rule = f"hold one sense for each of {len(vectors)} sentences"
            checks.length(owner, "senses", self.senses, len(vectors), rule=rule, unit="senses")
            same = np.equal.outer(self.senses, self.senses)
            groups = {"same sense": pairs & same, "other sense": ~same}
        units = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), np.finfo(float).tiny)
        self.cosines = np.einsum("ilh,jlh->lij", units, units)
        self.curves = {name: self.cosines[:, mask].mean(axis=1).tolist() for name, mask in groups.items() if mask.any()}

    @classmethod
    def from_model(
        cls,
        model: keras.Model,
        word: str,
        sentences: Sequence[str],
        *,
        senses: Any = None,
        preprocessor: TextLayer | None = None,
    ) -> WordSenses:
        """Computes the hidden states of a word in each sentence, the mean of its pieces if it has several.

        Args:
            model: a `BertBackbone`, or a task, whose backbone is used.
            word: the word. Its first occurrence in a sentence counts, in capitals or not.
            sentences: the sentences.
            senses: the sense of the word in each sentence, if known.
            preprocessor: a `BertPreprocessor`; the task's own if None.

        Raises:
            TypeError: `model` is not a backbone or a task; `word` is not a string.
            ValueError: a sentence does not have the word; the message names it.
        """
        checks.instance(cls.__name__, "word", word, str)
        features = Features(model, preprocessor, layers="all", combine="stack", per="word")
        positions = []
        for sentence, words in zip(sentences, features.words(sentences), strict=True):
            names = [found.text.casefold() for found in words]
            if word.casefold() not in names:
                rule = f"have {word!r} as a word in each sentence"
                raise ValueError(checks.message(cls.__name__, "sentences", rule, sentence))
            positions.append(names.index(word.casefold()))
        states = features.predict(sentences, verbose=0)
        vectors = [words[position] for words, position in zip(states, positions, strict=True)]
        return cls(word, sentences, vectors, senses=senses)

    def _body(self) -> list[html.Element]:
        numbers = [str(number) for number in range(1, len(self.sentences) + 1)]
        columns = [self.sentences] if self.senses is None else [self.senses, self.sentences]
        rows = [
            [number, *map(html.isolated, sense), html.element("td", html.isolated(sentence), class_="wrap")]
            for number, *sense, sentence in zip(numbers, *columns, strict=True)
        ]
        header = ["number", "sentence"] if self.senses is None else ["number", "sense", "sentence"]
        body = [html.table("The sentences.", header, rows), *layer_curves("mean cosine", self.curves)]
        last = len(self.cosines) - 1
        return body + [self._matrix(layer, numbers) for layer in sorted({0, last // 2, last})]

    def _matrix(self, layer: int, numbers: list[str]) -> html.Element:
        low = self.cosines.min()  # has the lightest shade, in all layers
        shares = (self.cosines[layer] - low) / (1 - low or 1)
        rows = [
            [number, *(html.number(f"{c:.2f}", f"s{colors.step_of(share)}") for c, share in zip(*row, strict=True))]
            for number, *row in zip(numbers, self.cosines[layer].tolist(), shares.tolist(), strict=True)
        ]
        return html.table(f"Layer {layer}: the cosine of each pair of sentences.", ["number", *numbers], rows)
