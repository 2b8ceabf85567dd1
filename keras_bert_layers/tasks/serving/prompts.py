"""`Prompts`: texts that a model was trained to read before every text."""

import functools
import re
from collections.abc import Collection, Mapping
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.types import Rows
from keras_bert_layers.export import Signature
from keras_bert_layers.export.text_task import TextTask

# An unknown name is a mistake, not a prompt.
_NAME = re.compile(r"[\w.-]+", re.ASCII)
#: The adapters of queries and documents, as Jina embeddings v3 names them.
RETRIEVAL = {"query": "retrieval.query", "document": "retrieval.passage"}
_OWN_SIGNATURES = ("serving_default", "token_ids", "tokenize")


class Prompts:
    """The prompts of a model by name, and the name of the default one.

    Args:
        owner: the task's class, for errors.
        prompts: name -> text; None for none.
        default: the name of the prompt that applies where none is given; None for no prompt.
        adapters: the names of the backbone's adapters, which a prompt of the same name uses.
        parts: the names of parts of the task, which a prompt of the same name uses.

    Raises:
        TypeError: names or texts that are not strings.
        ValueError: `default` is not one of the names; a name is that of another signature.
    """

    def __init__(
        self,
        owner: str,
        prompts: Mapping[str, str] | None,
        default: str | None = None,
        adapters: Collection[str] = (),
        parts: Collection[str] = (),
    ):
        self._owner, self._adapters, self._parts = owner, adapters, parts
        self.by_name = {} if prompts is None else dict(prompts)
        self.default = default
        if not all(isinstance(part, str) for parts in self.by_name.items() for part in parts):
            raise TypeError(checks.message(owner, "prompts", "be strings by name", prompts))
        for name in _OWN_SIGNATURES:
            if name in self.by_name:
                rule = f"have names other than {list(_OWN_SIGNATURES)}, which are signatures"
                raise ValueError(checks.message(owner, "prompts", rule, prompts))
        if default is not None and default not in self.by_name:
            rule = f"be None or the name of a prompt, one of {list(self.by_name)}"
            raise ValueError(checks.message(owner, "default_prompt", rule, default))

    def text(self, prompt: str | None = None) -> str:
        """The text of a prompt.

        Args:
            prompt: a name, a text with more than letters, digits and `_ . -` (or the empty one), or None for the
                default.
        """
        prompt = self.default if prompt is None else checks.instance(self._owner, "prompt", prompt, str)
        if prompt is None:
            return ""
        if _NAME.fullmatch(prompt) and prompt not in self.by_name:
            cure = "A prompt without a name ends as it was trained, with a blank or a colon."
            rule = f"be a text, or the name of a prompt, one of {list(self.by_name)}"
            raise ValueError(checks.message(self._owner, "prompt", rule, prompt, cure))
        return self.by_name.get(prompt, prompt)

    def adapter(self, prompt: str | None = None) -> str | None:
        """The adapter of a prompt; None for none, and for a prompt that is a text."""
        prompt = self.default if prompt is None else prompt
        return prompt if prompt in self._adapters and prompt in self.by_name else None

    def part(self, prompt: str | None = None) -> str | None:
        """The part of the task that a prompt uses; None for the whole task, which has the adapter of the default."""
        if prompt in self._parts:
            return prompt
        adapter = self.adapter(prompt)
        index = list(self._adapters).index(adapter) if adapter else "none"
        return None if adapter == self.adapter() else f"adapter_{index}"

    def adapters_of_parts(self) -> dict[str, str | None]:
        """The parts beside the whole task, each with its adapter; None for the weights alone."""
        parts = {self.part(prompt): self.adapter(prompt) for prompt in ("", *self.by_name)}
        return {part: adapter for part, adapter in parts.items() if part is not None}

    def of_side(self, side: str) -> str:
        """The prompt of queries or documents, `side`: that of its name, else the one for retrieval with an adapter."""
        retrieval = RETRIEVAL[side]
        return side if side in self.by_name else retrieval if self.adapter(retrieval) else ""

    def pipeline(self, task: TextTask, prompt: str | None, x: Rows) -> Any:
        """The pipeline that reads `x`: that of a task, with another prompt if one is given."""
        if prompt is None:
            return task.pipeline
        if not task.pipeline.is_raw(x):
            cure = "Ids are made by `preprocessor(texts)`, where you put it before the texts yourself."
            raise ValueError(checks.message(self._owner, "prompt", "be None for ids", prompt, cure))
        return task.pipeline.prompted(self.text(prompt), self.part(prompt))

    def signatures(self, task: TextTask) -> list[Signature]:
        """A signature for each prompt, by its name; `task.serve_prompted` takes the prompt and the texts."""
        inputs = task.text_inputs()
        return [Signature(name, functools.partial(task.serve_prompted, name), inputs) for name in self.by_name]
