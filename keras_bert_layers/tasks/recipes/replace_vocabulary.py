"""`VocabularyReplacer`: replaces the tokens of a model, in its tokenizers and in the weights with a row per token."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks, keras_models
from keras_bert_layers._internal.keras_models import all_layers
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.layers import BertEmbedding, MaskedLMHead
from keras_bert_layers.layers.adapters import refuse_adapters
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.preprocessing.word_piece.bert_tokenizer import BertTokenizer
from keras_bert_layers.static_backbone import MeanEmbedding, StaticBackbone
from keras_bert_layers.tasks.task import Task


class VocabularyReplacer:
    """Replaces the tokens of a model and its preprocessor by making both again.

    Args:
        owner: the public function that was called, for errors.
        model: a task or a `BertBackbone`.
        preprocessor: the preprocessor of a backbone, or of a task without one.

    Attributes:
        tokenizer: the tokenizer.

    Raises:
        TypeError: the model is neither; the tokenizer is not a `BertTokenizer`.
        ValueError: there is no preprocessor; two tokens have one id.
    """

    def __init__(self, owner: str, model: keras.Model, preprocessor: TextLayer | None):
        if not isinstance(model, Task | BertBackbone):
            raise TypeError(checks.message(owner, "model", "be a task or a BertBackbone", model))
        refuse_adapters(owner, model)
        own = getattr(model, "preprocessor", None)
        self._preprocessor: Any = own if preprocessor is None else preprocessor
        if self._preprocessor is None:
            cure = "A backbone has none: give that of its checkpoint, `load_preprocessor(source)`."
            raise ValueError(checks.message(owner, "preprocessor", "be given", None, cure))
        tokenizer = getattr(self._preprocessor, "tokenizer", None)
        cure = "Only a WordPiece vocabulary can change; SentencePiece has scores too, and BPE merges."
        self.tokenizer = checks.instance(owner, "preprocessor.tokenizer", tokenizer, BertTokenizer, cure)
        self._plain: list[str] = self.tokenizer.get_config()["vocabulary"]
        if self.tokenizer.all_tokens()[: len(self._plain)] != self._plain:
            rule = "hold each token once, as an added token has the id of another"
            shown = checks.Shown(f"<{len(self._plain)} tokens>")
            raise ValueError(checks.message(owner, "tokenizer.vocabulary", rule, shown))
        self._owner, self._model = owner, model
        self._is_own = self._preprocessor is own
        backbones = [part for part in all_layers(model) if isinstance(part, BertBackbone | StaticBackbone)]
        self._sizes = {backbone.config.vocabulary_size for backbone in backbones}

    @property
    def num_rows(self) -> int:
        """The number of rows of the token embedding; at least that of the tokens."""
        return max(self._sizes)

    def replace(
        self, vocabulary: list[str], num_rows: int, rows: Callable[[np.ndarray], np.ndarray]
    ) -> tuple[Any, Any]:
        """Makes the model and the preprocessor with other tokens.

        Args:
            vocabulary: the new argument of `BertTokenizer`.
            num_rows: the new number of rows of the token embedding.
            rows: from the old to the new rows of a weight `(tokens, ...)`: the token embedding, and the bias and the
                matrix of a masked-LM head.

        Raises:
            ValueError: parts of the model have different vocabularies.
        """
        if len(self._sizes) > 1:
            raise self._different(f"{sorted(self._sizes)} rows")
        config = self._changed(self._model.get_config(), vocabulary, num_rows)
        model = keras_models.rebuild(self._model, config, _token_weights(self._model), rows)
        if self._is_own:
            return model, model.preprocessor
        config = self._changed(self._preprocessor.get_config(), vocabulary, num_rows)
        return model, type(self._preprocessor).from_config(config)

    def _changed(self, value: object, vocabulary: list[str], num_rows: int) -> Any:
        """A config with other tokens wherever there is a tokenizer, and other sizes wherever there is an encoder."""
        if not isinstance(value, dict):
            return value
        changed = {key: self._changed(item, vocabulary, num_rows) for key, item in value.items()}
        if isinstance(value.get("vocabulary"), list):
            if value["vocabulary"] != self._plain:
                raise self._different("other tokens in one of its tokenizers")
            changed["vocabulary"] = list(vocabulary)
        if "vocabulary_size" in value:
            changed["vocabulary_size"] = num_rows
        return changed

    def _different(self, received: str) -> ValueError:
        rule = "have one vocabulary for all its encoders and tokenizers"
        return ValueError(checks.message(self._owner, "model", rule, checks.Shown(received)))


def _token_weights(model: keras.Model) -> list[Any]:
    """The weights with a row for each token."""
    found = []
    for layer in all_layers(model):
        if isinstance(layer, BertEmbedding | MeanEmbedding):
            found.append(layer.token_embedding)
        if isinstance(layer, MaskedLMHead):
            found += [layer.bias] if layer.tie_weights else [layer.bias, layer.decoder]
    return found
