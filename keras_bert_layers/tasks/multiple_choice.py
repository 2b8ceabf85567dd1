"""Multiple choice: which of several texts follows from a prompt."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.decoding import decode_choices
from keras_bert_layers.export import onnx
from keras_bert_layers.layers import FlattenChoices, MultipleChoiceHead
from keras_bert_layers.layers.classification_head import ABSENT_SCORE
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import BertPreprocessor
from keras_bert_layers.tasks.graphs.heads import check_parts, head_options
from keras_bert_layers.tasks.inputs import ChoiceInputs
from keras_bert_layers.tasks.task import Task


@register
class BertMultipleChoice(Task):
    """Chooses which text follows from a prompt: each pair of prompt and choice gets a score, and the best one wins.

    Rows may have different numbers of choices. In columns and in arrays an empty string is not a choice: it pads a row
    that has fewer than others. A row's softmax and loss see its own choices only.

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `BertPreprocessor`; with one, `fit`, `evaluate` and `predict` take raw text: `x` is a tuple
            `(prompts, choices)`, a list of strings and a list of lists of strings, or an array or tensor of each; `y`
            holds the index of the right choice in each row, counted from 0. A `tf.data.Dataset` yields
            `((prompts, choices), y)`, with the choices ragged, or padded with empty strings.
        dropout: the share of pooled features dropped in training before the dense layer; the backbone's if None.
        name: the model's name.

    Returns:
        `predict` returns float32 logits `(rows, choices)`, as many columns as the longest row has choices, -1e9 for an
        absent choice. A call on ids `(batch, choices, sequence)` returns logits `(batch, choices)`, -1e9 where the
        padding mask of a choice is all 0.

    Raises:
        TypeError: a backbone or a preprocessor of another type; a call on text; choices that are not lists of strings.
        ValueError: an argument out of range; a row without choices, or whose label is not the index of one of them
            (the message names the row).

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=7, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "bread", "boil", "bake"])
        >>> chooser = kbl.BertMultipleChoice(kbl.BertBackbone(config), preprocessor=kbl.BertPreprocessor(tokenizer))
        >>> prompts, choices = ["bread", "bread"], [["boil", "bake"], ["bake", "boil", "bread"]]
        >>> history = chooser.fit((prompts, choices), [1, 0], verbose=0)
        >>> chooser.predict((prompts, choices), verbose=0).shape
        (2, 3)

    References:
        Devlin et al. 2018, arXiv:1810.04805, section 4.4 (SWAG).
    """

    def __init__(
        self,
        backbone: BertBackbone,
        *,
        preprocessor: BertPreprocessor | None = None,
        dropout: float | None = None,
        name: str | None = None,
    ):
        check_parts("BertMultipleChoice", backbone, preprocessor)
        dropout = backbone.config.dropout if dropout is None else dropout
        head = MultipleChoiceHead(dropout=dropout, **head_options(backbone, "multiple_choice_head"))
        inputs = {key: keras.Input((None, None), dtype="int32", name=key) for key in backbone.input}
        flatten = FlattenChoices(name="flatten_choices")
        pooled = backbone({key: flatten(ids) for key, ids in inputs.items()})["pooled_output"]  # [B * choices, H]
        # A choice without a single token is absent.
        outputs = head(pooled, choice_mask=keras.ops.max(inputs["padding_mask"], axis=-1))
        pipeline = ChoiceInputs("BertMultipleChoice", preprocessor, fill_value=ABSENT_SCORE)
        super().__init__(backbone, pipeline, outputs=outputs, inputs=inputs, name=name)
        self.dropout = dropout
        self.compile()

    def default_loss(self) -> keras.losses.Loss:
        """Cross entropy of the logits of a row's choices."""
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def default_metrics(self) -> list[keras.metrics.Metric]:
        """The share of rows whose right choice has the highest logit, named `"accuracy"`."""
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def onnx_functions(self) -> onnx.Functions:
        """The signature `serving_default`."""
        return {"serving_default": self._onnx_answers}

    def _onnx_answers(
        self, model: onnx.OnnxModel, prompts: onnx.Tensor, choices: onnx.Tensor
    ) -> dict[str, onnx.Answer]:
        graph = model.graph
        present = ~choices.equals("")  # (batch, choices)
        # One is computed if there is none at all.
        number = graph.range(choices.size())
        computed = present.reshape(-1) | (number.equals(0) & ~(present.cast(onnx.INT64).reduced("Max") > 0))
        place = number.compress(computed, 0)
        rows = model.rows(prompts.take(place // choices.size(1)), choices.reshape(-1).take(place))
        model.num_tokens = None  # that of pairs, of which a row has several
        scores = onnx.dense(model.pooled_output(rows), self.get_layer("multiple_choice_head").dense).take(0, 1)
        scores = number.filled(0, onnx.FLOAT).scattered(place, scores)
        lowest = np.finfo(np.float32).min
        logits = present.where(scores.reshape(choices.shape()), lowest)
        best, is_any = onnx.argmax(logits), present.cast(onnx.INT64).reduced("Max", 1) > 0
        first = graph.range(best.size()) * choices.size(1)
        return {
            "choice": onnx.Answer(is_any.where(choices.reshape(-1).take(first + best), ""), (None,)),
            "choice_index": onnx.Answer(is_any.where(best, -1).cast(onnx.INT32), (None,)),
            "probabilities": onnx.Answer(present.where(onnx.softmax(logits), 0), (None, None)),
        }

    def serve(self, *texts: Tensor) -> dict[str, Any]:
        """Strings to `choice`, `choice_index` and `probabilities`; only choices that are present are computed."""
        prompts, choices = texts
        present = tf.where(tf.not_equal(choices, ""))  # [pairs, 2]
        pairs = (tf.gather(prompts, present[:, 0]), tf.gather_nd(choices, present)[:, tf.newaxis])
        scores = self.run(self.pipeline.tokens(*pairs))[:, 0]
        logits = tf.tensor_scatter_nd_update(tf.fill(tf.shape(choices), ABSENT_SCORE), present, scores)
        return decode_choices(logits, choices)
