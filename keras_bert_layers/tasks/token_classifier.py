"""Token classification (NER): a tag for each word, and the entities of a text."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Columns, Ids, Labels, Outputs, Rows, Strings, Tensor
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.decoding import decode_entities
from keras_bert_layers.export import onnx
from keras_bert_layers.layers import ConditionalRandomField, TokenClassificationHead
from keras_bert_layers.metrics import EntityF1
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import BertPreprocessor
from keras_bert_layers.preprocessing.preprocessors.word_aligner import NO_WORD, AlignedWords, check_stride
from keras_bert_layers.tag_scheme import check_tag_names, tag_scheme
from keras_bert_layers.tasks.feeding.global_batches import on_real_rows
from keras_bert_layers.tasks.graphs.heads import check_parts, head_options, head_states
from keras_bert_layers.tasks.inputs import WordInputs
from keras_bert_layers.tasks.inputs.tags import IGNORED
from keras_bert_layers.tasks.prediction.windows import states_of_windows
from keras_bert_layers.tasks.serving.attributed_rows import tag_rows
from keras_bert_layers.tasks.serving.attribution import attribute
from keras_bert_layers.tasks.serving.word_tags import AGGREGATIONS, TaggedWords, tags_of_pieces
from keras_bert_layers.tasks.task import Task


@register
class BertTokenClassifier(Task):
    """Finds entities (NER): one tag per word, from the vector of its first piece through dropout and a dense layer.

    **Training data** are words with tags, as `data.read_conll` returns them: `fit(words, tags)`, both with one list a
    row. Or they are texts with spans: `fit(texts, spans)`, the spans of a text a list of `(start, end, label)`,
    counted in characters of the Python string. As a `tf.data.Dataset`: batches of `(words, tags)`, ragged strings and
    ragged strings or integers `(batch, words)`; or of `(text, (starts, ends, labels))`, ragged `(batch, spans)` each.

    **Answers.** `predict_tags(words)` returns one tag name for each given word. `answer(texts)` and the exported model
    take raw text and return `entity_label`, `entity_text`, `entity_start`, `entity_end` (bytes) and `entity_score`,
    each `(batch, entities)`, with rows of fewer entities padded with `""` and -1. An entity's text is cut from the
    original, and its score is the mean over its words of the probability of the tag. Where tags are not spans, such as
    parts of speech, every word is one entry.

    **Words.** The tokenizer splits at whitespace and punctuation, and each part is a word to the model: "@user" is two,
    "don't" three. If a given word is several to the tokenizer, the first begins its entity, and the others are inside
    the same entity (or outside all), so that text that was never split into words is tagged in the same way. Only the
    first counts in the metric, and gives the tag of the given word (in BIOES and BILOU, the last shows whether the
    entity ends). Pieces after the first of a word do not count.

    **Length.** Texts longer than the preprocessor's `max_length` are read through windows that share `stride` tokens,
    in training and in prediction. Every word is tagged in the window in which it has most context, and entities are
    then found over the whole text.

    Args:
        backbone: a `BertBackbone`.
        tag_names: the names of the tags in the order of their ids, such as "O" and, for each label, "B-label" and
            "I-label".
        scheme: how the names mark entities: `"bio"`; `"iob1"`, with "B-" only between two entities of the same label;
            `"io"`, with one tag per label; `"bioes"`, with "E-" for the last word and "S-" for the only one; `"bilou"`,
            with "L-" and "U-" for them; or `"labels"`, tags that are not spans. None infers it from the names, which
            may also be "label-B", "B_label", "b-label" or "B". The attribute `scheme` holds it.
        aggregation: what decides a word's tag in answers and exports: `"first"`, its first piece; `"average"`,
            the mean of the probabilities of its pieces; `"max"`, the piece with the highest probability. With
            `"simple"`, every piece is tagged on its own, so that an entity may begin and end inside a word. May be
            changed at any time.
        crf: whether a `ConditionalRandomField` scores the tags of a row together. It predicts only rows that the scheme
            allows: in BIO, no "I-" tag without a "B-" or "I-" of its label before it. Without it, every word is tagged
            on its own, and an "I-" after "O" or another label begins an entity. It needs `aggregation="first"`.
        preprocessor: a `BertPreprocessor`; with one, `fit`, `evaluate` and `predict` take words and raw text.
        stride: the number of tokens that two windows of a long text share; a quarter of `max_length` if None.
        dropout: the share of each token's vector dropped in training before the dense layer; the backbone's if None.
        name: the model's name.

    Returns:
        A call on ids returns float32 logits `(batch, sequence, tags)`, as does `predict` on ids. `predict` on words or
        texts returns float32 logits `(rows, words, tags)`, those of texts for the words of the tokenizer, 0 after the
        last word of a row.

    Raises:
        TypeError: an argument of the wrong type; rows that are not lists of words, tags or spans.
        ValueError: an argument out of range; invalid tags, labels or spans (the message names the row).

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=7, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "in", "new", "york"])
        >>> classifier = kbl.BertTokenClassifier(
        ...     kbl.BertBackbone(config), ["O", "B-place", "I-place"], preprocessor=kbl.BertPreprocessor(tokenizer)
        ... )
        >>> words, tags = [["in", "New", "York"], ["York"]], [["O", "B-place", "I-place"], ["B-place"]]
        >>> history = classifier.fit(words, tags, verbose=0)  # or texts, and spans such as `[(3, 11, "place")]`
        >>> [len(tags) for tags in classifier.predict_tags([["New", "York"], ["York"]])]
        [2, 1]

    References:
        Devlin et al. 2018, arXiv:1810.04805, section 5.3; Lample et al. 2016, arXiv:1603.01360, section 2.2 (the
        conditional random field).
    """

    pipeline: WordInputs
    reads_pooled_output = False

    def __init__(
        self,
        backbone: BertBackbone,
        tag_names: Sequence[str],
        *,
        scheme: str | None = None,
        aggregation: str = "first",
        crf: bool = False,
        preprocessor: BertPreprocessor | None = None,
        stride: int | None = None,
        dropout: float | None = None,
        name: str | None = None,
    ):
        check_parts("BertTokenClassifier", backbone, preprocessor)
        tag_names = check_tag_names("BertTokenClassifier", tag_names)
        found = tag_scheme("BertTokenClassifier", tag_names, scheme)
        checks.boolean("BertTokenClassifier", "crf", crf)
        if preprocessor is not None:
            check_stride("BertTokenClassifier", stride, preprocessor.max_length)
        dropout = backbone.config.dropout if dropout is None else dropout
        head = TokenClassificationHead(
            len(tag_names), dropout=dropout, **head_options(backbone, "token_classification_head")
        )
        outputs = head(head_states(backbone, backbone.input))
        pipeline = WordInputs("BertTokenClassifier", preprocessor, tag_names, scheme=found, stride=stride)
        super().__init__(backbone, pipeline, outputs=outputs, name=name)
        self.tag_names = tag_names
        self.scheme = found.name
        self.crf = None
        if crf:
            self.crf = ConditionalRandomField(
                len(tag_names), tag_names=tag_names, scheme=found.name, name="conditional_random_field"
            )
            self.crf.build(outputs.shape)
        self.aggregation = aggregation
        self.stride = stride
        self.dropout = dropout
        self._scope_of_step: Callable[[], Any] = nullcontext
        self.compile()

    @property
    def aggregation(self) -> str:
        """What decides a word's tag in answers: "first", "average", "max" or "simple"."""
        return self._aggregation

    @aggregation.setter
    def aggregation(self, aggregation: str) -> None:
        checks.one_of("BertTokenClassifier", "aggregation", aggregation, AGGREGATIONS)
        if self.crf is not None and aggregation != "first":
            rule = 'be "first" with crf=True, which scores words'
            raise ValueError(checks.message("BertTokenClassifier", "aggregation", rule, aggregation))
        self._aggregation = aggregation
        self.forget_traces()

    def attribute(
        self,
        texts: Strings,
        target: object = None,
        *,
        baseline: str = "pad",
        tolerance: float = 1e-3,
        max_steps: int = 256,
        verbose: str | int = 0,
    ) -> Any:
        """Scores the tokens of texts by how much each raised a tag of a word.

        `tasks.serving.attribution.attribute` documents the arguments, errors and what it returns.
        """
        options: dict[str, Any] = {"baseline": baseline, "tolerance": tolerance, "max_steps": max_steps}
        return attribute(self, tag_rows, texts, target, verbose=verbose, **options)

    def default_loss(self) -> keras.losses.Loss:
        """Cross entropy of the tags, the mean over the words; with `crf`, of whole rows, divided by the words."""
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=IGNORED)

    def default_metrics(self) -> list[keras.metrics.Metric]:
        """F1 of whole entities, named `"f1"`."""
        return [EntityF1(self.tag_names, scheme=self.scheme)]

    @on_real_rows
    def compute_loss(
        self, x: Ids | None = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        """The compiled loss, on words; with `crf`, on the logits of each tag given the tags before it."""
        tags, logits, _ = self._by_word(y, y_pred, "tags")
        if self.crf is not None:
            logits = self.crf.logits_given_past(logits, tags, tags != IGNORED)
        weight = _for_every_word(sample_weight)
        return super().compute_loss(x=x, y=tags, y_pred=logits, sample_weight=weight, training=training)

    @on_real_rows
    def compute_metrics(self, x: Ids, y: Outputs, y_pred: Outputs, sample_weight: Any = None) -> dict[str, Any]:
        """The compiled metrics, on given words; with `crf`, of the best row of tags, its tags 1 and others 0."""
        tags, logits, is_word = self._by_word(y, y_pred, "given_tags")
        if self.crf is not None:
            with self._scope_of_step():
                best = self.crf.viterbi(logits, is_word)
            logits = ops.one_hot(best, len(self.tag_names), dtype=logits.dtype)
        return super().compute_metrics(x, tags, logits, _for_every_word(sample_weight))

    def train_step(self, *arguments: Any) -> Any:
        """One step of training, as Keras calls it."""
        return self._step(super().train_step, arguments)

    def test_step(self, *arguments: Any) -> Any:
        """One step of evaluation, as Keras calls it."""
        return self._step(super().test_step, arguments)

    def _step(self, step: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """A step of Keras; on JAX metrics get no weights of the model, but the best tags need the CRF's."""
        if self.crf is None or keras.backend.backend() != "jax":
            return step(*arguments)
        trainable, others, *_ = arguments[0]
        variables = (*self.trainable_variables, *self.non_trainable_variables)
        values = {id(variable): value for variable, value in zip(variables, (*trainable, *others), strict=True)}
        crf_values = [(weight, values[id(weight)]) for weight in self.crf.weights]
        self._scope_of_step = functools.partial(keras.StatelessScope, crf_values)
        try:
            return step(*arguments)
        finally:
            self._scope_of_step = nullcontext

    def _by_word(self, y: Labels, y_pred: Outputs, kind: str) -> tuple[Any, Any, Any]:
        """Tags, logits and a mask of words, `(batch, words)`; for ids all by token, with words where tags are."""
        if not isinstance(y, dict):
            return y, y_pred, y != IGNORED
        if kind not in y:
            raise ValueError(f"`{type(self).__name__}`: the dataset must yield tags or spans too. Received: `x` alone.")
        logits = ops.reshape(y_pred, (-1, len(self.tag_names)))
        return y[kind], ops.take(logits, ops.maximum(y["positions"], 0), axis=0), y["positions"] != NO_WORD

    def predict_tags(self, words: Rows, batch_size: int | None = None, **kwargs: Any) -> list[list[str]]:
        """One tag for each given word.

        Args:
            words: rows of words: a list of lists of strings, ragged strings `(rows, words)`, a dataset of these, or an
                iterable that gives one row at a time.
            batch_size: the most windows per step.
            **kwargs: `max_tokens_per_batch`, `steps`, `callbacks` and `verbose`, which is 0, as in `predict`.

        Returns:
            One list of tag names for each row, as long as the row.

        Raises:
            TypeError: texts instead of rows of words; ask `answer` for their entities.
        """
        self.pipeline.is_raw(words)
        whole_tags = self.pipeline.scheme.whole_tags

        def compute(columns: Columns, run: Callable[..., Any]) -> list[list[str]]:
            self.pipeline.require_words(columns)
            found = self.pipeline.word_logits(columns, run)
            specs = (tf.TensorSpec([None, None, len(self.tag_names)]), tf.TensorSpec([None, None], tf.bool))
            decode = self.predictor.traced_once(self._decode, specs)
            tags = ops.convert_to_numpy(decode(found.logits, found.is_word)[0])
            rows = zip(tags, found.is_given, found.is_last, strict=True)
            return [[self.tag_names[tag] for tag in whole_tags[row[first], row[last]]] for row, first, last in rows]

        options = {"batch_size": batch_size, "verbose": 0, **kwargs}
        return list(
            itertools.chain.from_iterable(self.predictor.blocks(self.pipeline, words, compute=compute, **options))
        )

    def onnx_functions(self) -> onnx.Functions:
        """The signature `serving_default`."""
        return {"serving_default": self._onnx_answers}

    def _onnx_answers(self, model: onnx.OnnxModel, text: onnx.Tensor) -> dict[str, onnx.Answer]:
        tokenizer, max_length = self.preprocessor.tokenizer, self.preprocessor.max_length
        tokens = onnx.in_sight(model.tokenizer(tokenizer).tokens(text, with_offsets=True))
        room, overlap = max_length - 2, check_stride("export", self.stride, max_length)
        windows = onnx.windows_over(tokens, room, overlap, tokenizer)
        logits = self.onnx_outputs(model, windows.rows)["logits"].tensor
        logits = onnx.outputs_of_tokens(logits, tokens, windows, room, overlap)
        words = onnx.Words(tokens, tokenizer.continues_word(), by_piece=self.aggregation == "simple")
        if self.crf is not None:
            tagged = words.best_rows(logits, self.crf)
        else:
            tagged = words.tagged(logits, "first" if self.aggregation == "simple" else self.aggregation)
        return onnx.entities(*tagged, words, tag_scheme("export", self.tag_names, self.scheme))

    def onnx_outputs(self, model: onnx.OnnxModel, rows: onnx.Rows) -> dict[str, onnx.Answer]:
        """`logits` for rows of ids in an ONNX file."""
        logits = onnx.dense(model.head_states(rows), self.get_layer("token_classification_head").dense)
        return {"logits": onnx.Answer(logits, (None, None, len(self.tag_names)))}

    def _decode(self, logits: Tensor, is_word: Tensor) -> tuple[Any, Any]:
        """The tags of words `(batch, words)` and the probability of each."""
        if self.crf is None:
            probabilities = ops.softmax(logits, axis=-1)
            return ops.argmax(logits, axis=-1), ops.max(probabilities, axis=-1)
        tags = self.crf.viterbi(logits, is_word)
        probabilities = self.crf(logits, padding_mask=is_word)
        return tags, ops.take_along_axis(probabilities, tags[:, :, None], axis=-1)[:, :, 0]

    def serve(self, *texts: Tensor) -> dict[str, Any]:
        """Strings to entities."""
        words = self.align(texts[0])
        logits = states_of_windows(self.run, words.inputs, self.preprocessor, self.output)
        return self.decode(logits, texts[0], words)

    def align(self, texts: Strings) -> AlignedWords:
        """The words of texts, or their pieces, as the aggregation needs them; in graph."""
        return getattr(self.pipeline.aligner(), "align" if self.aggregation == "first" else "align_pieces")(texts)

    def decode(self, logits: Tensor, texts: Strings, words: AlignedWords) -> dict[str, Any]:
        """The logits of windows to the entities of texts; in graph."""
        if self.aggregation in ("average", "max"):
            found = tags_of_pieces(logits, words, aggregation=self.aggregation)
        else:
            found = TaggedWords(*self._tags_of_words(logits, words), words.starts, words.ends)
        return decode_entities(texts, **found._asdict(), tag_names=self.tag_names, scheme=self.scheme)

    def _tags_of_words(self, logits: Tensor, words: AlignedWords) -> tuple[Any, Any]:
        """The tags of words and the probability of each, `(batch, words)`, from the logits of windows."""
        places = tf.maximum(words.places, 0)
        if self.crf is not None:
            logits = tf.gather(tf.reshape(logits, [-1, len(self.tag_names)]), places)  # (batch, words, tags)
            return self._decode_in_tensorflow(logits, words.places != NO_WORD)
        # In the windows, whose number grows with the text. The rows of words are all as wide as the longest: their
        # logits would take the memory of a long text once for each text of the batch.
        tags, scores = self._decode_in_tensorflow(logits, words.inputs["padding_mask"])
        return tf.gather(tf.reshape(tags, [-1]), places), tf.gather(tf.reshape(scores, [-1]), places)

    def _decode_in_tensorflow(self, logits: Any, is_word: Any) -> tuple[Any, Any]:
        """The same as `_decode`, with TensorFlow tensors whatever the backend is."""
        if keras.backend.backend() == "tensorflow":
            tags, scores = self._decode(logits, is_word)
        else:
            tags, scores = map(ops.convert_to_numpy, self._decode(logits.numpy(), is_word.numpy()))
        return tf.cast(tags, tf.int32), tf.cast(scores, tf.float32)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "crf": self.crf is not None}


def _for_every_word(sample_weight: Tensor) -> Any:
    """Weights of rows `(batch,)` as `(batch, 1)`; others unchanged."""
    is_by_row = sample_weight is not None and len(sample_weight.shape) == 1
    return sample_weight[:, None] if is_by_row else sample_weight
