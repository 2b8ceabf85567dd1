"""Answers checked requests with a model: admission, limits and batches, whatever the route."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from batcher import Batcher
from limits import Limits
from token_estimate import estimated_tokens, longest_text

from keras_bert_layers.export.json_request import RequestError, reason


@dataclass
class RequestRecord:
    """What the log and the metrics report about a request; nothing of its texts."""

    request_id: str
    rows: int = 0
    tokens: int = 0
    error: str = ""


@dataclass(frozen=True)
class _Step:
    """Rows with equal steps are batched."""

    version: Any
    signature: str
    shapes: tuple[tuple[int, ...], ...]
    alone: int | None = None
    with_tokens: bool = False

    def run(self, columns: dict[str, np.ndarray]) -> list[Any]:
        if self.signature == LOGITS:
            return self.version.logits(columns)
        answers = self.version.answer(self.signature, columns)
        if self.with_tokens and "num_tokens" not in answers[0]:  # an ONNX file returns them
            for answer, tokens in zip(answers, self.version.num_tokens(columns), strict=True):
                answer["num_tokens"] = tokens
        return answers


# Not a signature: `tokenize` and `token_ids`, one behind the other.
LOGITS = "logits"


class Answerer:
    """Answers requests with the newest version of a model.

    Args:
        model: a `ServedModel`.
        limits: what is accepted.
        observe: called with the rows and tokens of each step of the model.

    Attributes:
        draining: set it, and new requests are refused.
        num_under_way: the requests in progress.
    """

    def __init__(self, model: Any, limits: Limits, *, observe: Callable[[int, int], None] = lambda rows, tokens: None):
        self.model = model
        self.limits = limits
        self.batcher = Batcher(_Step.run, max_tokens=limits.batch_tokens, observe=observe)
        self.draining = False
        self.num_under_way = 0
        self._alone = itertools.count()

    @property
    def ready(self) -> bool:
        """Whether new requests are answered."""
        return self.model.current is not None and not self.draining

    def check_ready(self) -> None:
        """RequestError if no request can be answered now."""
        if self.draining:
            raise RequestError("the server is shutting down", status=503, code="draining")
        if self.model.current is None:
            raise RequestError("no version of the model is loaded yet", status=503, code="not_ready")
        self.limits.check("waiting", self.num_under_way + 1, "requests in progress", status=503)

    def admit(self) -> AbstractContextManager[None]:
        """Counts a request in progress until its end, or raises a `RequestError`."""
        self.check_ready()
        return self._under_way()

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        self.num_under_way += 1
        try:
            yield
        finally:
            self.num_under_way -= 1

    async def answer(
        self,
        signature: str,
        inputs: Any,
        record: RequestRecord,
        *,
        version: Any,
        with_tokens: bool = False,
    ) -> list[Any]:
        """One answer per row.

        Args:
            signature: a signature's name, or `LOGITS`.
            inputs: name -> a list, one entry per row; or the list alone, if the signature has one input.
            record: receives the rows and tokens.
            version: the version of the model; a request uses one throughout.
            with_tokens: whether each answer has `num_tokens` too, what the model reads of the row.

        Raises:
            RequestError: the model does not take the inputs, or they exceed a limit.
        """
        columns = version.check("tokenize" if signature == LOGITS else signature, inputs)
        record.rows = len(next(iter(columns.values())))
        tokens = estimated_tokens(columns, version.max_length)
        record.tokens = sum(tokens)
        self.limits.check("rows", record.rows, "the rows of a request")
        self.limits.check("text_tokens", longest_text(columns), "the tokens of a text (estimated from its bytes)")
        self.limits.check("tokens", sum(tokens), "the tokens of a request (estimated from its bytes)")
        # A wrong id fails its whole step, and the widths of `tokenize` belong to the request.
        alone = next(self._alone) if signature.endswith(("tokenize", "token_ids")) else None
        shapes = tuple(column.shape[1:] for column in columns.values())
        try:
            return await self.batcher.answer(_Step(version, signature, shapes, alone, with_tokens), columns, tokens)
        except Exception as error:  # any error of the model becomes the answer
            raise RequestError(reason(error), code="refused_by_model") from error
