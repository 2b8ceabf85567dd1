"""Try a model in a browser, on a page of this machine.

The page has a field for each text of the model, and shows its answer: words for masks, marked entities, the answer in
its text, or a table. It listens on 127.0.0.1 only, runs no script, and needs nothing but this package.

DIR is what train wrote, or a .keras file, a checkpoint with a trained head, or hf://owner/name. Of a search, which
export_search writes, it is the SavedModel or the .onnx file; the page then shows the passages that a query finds.

--facts adds a second page: what is in the rows that the model was trained on, as suggest --page wrote it.

Examples:
  keras-bert-layers demo sentiment
  keras-bert-layers demo sentiment --facts facts.html
  keras-bert-layers demo hf://owner/name --port 8000
"""

from __future__ import annotations

import argparse
import contextlib
import html
import json
import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.task_table import TASKS
from keras_bert_layers.cli.answer_lines import answer_lines
from keras_bert_layers.cli.exported_models import open_search
from keras_bert_layers.cli.local_server import Answer, serve_until_interrupted
from keras_bert_layers.cli.models import inputs_of, load_task_of_texts
from keras_bert_layers.cli.search_page import SearchPage
from keras_bert_layers.cli.text_rows import Inputs, check_file, checked_row, columns_of

OWNER = "demo"

_PAGE = Path(__file__).with_name("demo.html")
_FORM = "application/x-www-form-urlencoded"
# What an exported model reads of a text, and far more choices than a page can show.
_MAX_CHARACTERS, _MAX_LINES = 100_000, 1_000
_HINTS = {"BertMaskedLM": ". Write [MASK] where a word is missing."}
_FACTS, _BACK = "/facts", '<p><a href="/" style="color: inherit">Back to the form</a></p>'
_NO_SCRIPT = "content=\"default-src 'none'; "  # of the policy that every picture has


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("folder", metavar="DIR", help="the model to try")
    parser.add_argument("--task", choices=TASKS, metavar="TASK", help="which of the checkpoint's trained tasks to run")
    parser.add_argument("--facts", type=Path, metavar="FACTS.html", help="a page of suggest, to show beside the form")
    parser.add_argument("--port", type=int, default=7860, metavar="N", help="the port to listen on (default: 7860)")


def run(arguments: argparse.Namespace) -> int:
    """Shows the page until Ctrl-C, and returns 0."""
    folder = Path(arguments.folder)
    facts = "" if arguments.facts is None else _read_facts(arguments.facts)
    search = open_search(folder, owner=OWNER)
    if search is not None:
        model: Any = SearchPage(search)
    else:
        model = load_task_of_texts(arguments.folder, arguments.task, owner=OWNER, argument="DIR").model
    page = DemoPage(model, name=folder.name, facts=facts)
    page.warm_up()

    def announce(address: str) -> str:
        return f"open {address}/ in a browser; Ctrl-C stops it"

    options = {"owner": OWNER, "body": _FORM}
    serve_until_interrupted(arguments.port, page.answer, announce, show_error=error_page, **options)
    return 0


def error_page(message: str, status: int) -> Answer:
    """An error for a person; it states nothing of the model, as the page of another site may have asked."""
    text = f'<main><h1>Error {status}</h1><p role="alert">{html.escape(message[:500])}</p>{_BACK}</main>'
    page = f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>Error {status}</title><body>{text}</body></html>"
    return Answer(page, status, "text/html")


def _read_facts(path: Path) -> str:
    """The page that `suggest` wrote, with a way to the form."""
    check_file(path, owner=OWNER)
    page = path.read_text(encoding="utf-8", errors="replace")
    if _NO_SCRIPT not in page:
        raise ValueError(checks.message(OWNER, "--facts", "be a page that `suggest --page` wrote", str(path)))
    return page.replace("<main>", f"<main>\n{_BACK}", 1)


class DemoPage:
    """Answers the requests of a browser.

    Args:
        model: a task with a preprocessor, or a search.
        name: the model's name, for the title.
        facts: the HTML page of what is in the rows that it was trained on; empty for none.
    """

    def __init__(self, model: Any, *, name: str, facts: str = ""):
        kind = "search" if isinstance(model, SearchPage) else type(model).__name__
        self._model, self._title, self._facts = model, f"{name}: {kind}", facts
        self._inputs: Inputs = {"query": 1} if isinstance(model, SearchPage) else inputs_of(model)

    def warm_up(self) -> None:
        """Answers a short text, as the first answer of a model may take longer than a request may."""
        if isinstance(self._model, SearchPage):
            self._model.warm_up()
            return
        text = f"A word {self._model.preprocessor.tokenizer.mask_token} is missing."
        with contextlib.suppress(ValueError, TypeError, RuntimeError):
            self._result({name: text if isinstance(kind, int) else "" for name, kind in self._inputs.items()})

    def answer(self, method: str, path: str, body: bytes) -> Answer:
        """The page; after a form was sent, with the answer. Or the page of facts."""
        path = path.partition("?")[0]
        if self._facts and (method, path) == ("GET", _FACTS):
            return Answer(self._facts, kind="text/html")
        if path != "/":
            return Answer("no such page", 404, "text/plain")
        if method == "GET":
            return self._page({}, "")
        texts: dict[str, str] = {}
        try:
            sent = parse_qs(body.decode(errors="replace"), keep_blank_values=True, max_num_fields=len(self._inputs))
            texts = {name: sent.get(name, [""])[0].replace("\r\n", "\n") for name in self._inputs}
            result = self._result(texts)
        except (ValueError, TypeError, RuntimeError) as error:
            result = f'<p role="alert">{html.escape(str(error))}</p>'
        return self._page(texts, result)

    def _result(self, texts: Mapping[str, str]) -> str:
        """The answer as HTML."""
        from keras_bert_layers import BertMaskedLM, BertQuestionAnswerer, BertTokenClassifier
        from keras_bert_layers.visualization import MaskedTokens, TextHighlights

        empty = [name for name, text in texts.items() if isinstance(self._inputs[name], int) and not text.strip()]
        if empty:
            raise ValueError(f"Write something into “{_title_of(empty[0])}” first.")
        long = [name for name, text in texts.items() if len(text) > _MAX_CHARACTERS or text.count("\n") > _MAX_LINES]
        if long:
            most = f"{_MAX_CHARACTERS:,} characters and {_MAX_LINES:,} lines"
            raise ValueError(f"Write at most {most} into “{_title_of(long[0])}”.")
        model = self._model
        if isinstance(model, SearchPage):
            return model.result(texts["query"])
        if isinstance(model, BertMaskedLM):
            return MaskedTokens.from_model(model, texts["text"])._repr_html_()
        if isinstance(model, BertTokenClassifier):
            return TextHighlights.from_entities(model, texts["text"])._repr_html_()
        if isinstance(model, BertQuestionAnswerer):
            return TextHighlights.from_answer(model, texts["question"], texts["context"])._repr_html_()
        return self._table(texts)

    def _table(self, texts: Mapping[str, str]) -> str:
        """The answer as `predict` prints it, one row for each name."""
        values = [
            [line for line in text.split("\n") if line.strip()] if self._inputs[name] == 2 else text
            for name, text in texts.items()
        ]
        rows = [checked_row("the form", values, self._inputs, OWNER)]
        answer = json.loads(next(answer_lines(self._model.answer(columns_of(rows)), rows, self._inputs)))
        names = getattr(self._model, "class_names", None)
        if names and len(answer.get("probabilities", ())) == len(names):
            answer["probabilities"] = dict(zip(names, answer["probabilities"], strict=True))
        cells = (f"<th scope=row>{html.escape(name)}</th><td>{_shown(value)}</td>" for name, value in answer.items())
        return f"<table>{''.join(f'<tr>{cell}</tr>' for cell in cells)}</table>"

    def _page(self, texts: Mapping[str, str], result: str) -> Answer:
        hint = _HINTS.get(type(self._model).__name__, "")
        fields = "\n".join(
            f"<label>{html.escape(_title_of(name))}{': one on each line' if kind == 2 else ''}{hint}"
            f'<textarea name="{html.escape(name)}" rows="{4 if isinstance(kind, int) else 1}">'
            f"{html.escape(texts.get(name, ''))}</textarea></label>"
            for name, kind in self._inputs.items()
        )
        named = html.unescape(self._facts.partition("<title>")[2].partition("</title>")[0])
        link = f'<p><a href="{_FACTS}">{html.escape(named)}</a></p>' if named else ""
        page = string.Template(_PAGE.read_text(encoding="utf-8"))
        parts = {"title": html.escape(self._title), "link": link, "fields": fields, "result": result}
        return Answer(page.substitute(parts), kind="text/html")


def _title_of(name: str) -> str:
    return name[:1].upper() + name[1:].replace("_", " ")


def _shown(value: object) -> str:
    """A value of JSON in few characters; a dictionary as a table of its own, the largest first."""
    if isinstance(value, dict):
        rows = sorted(value.items(), key=lambda item: -item[1])
        cells = (f"<tr><td>{html.escape(name)}</td><td>{share:.3f}</td></tr>" for name, share in rows)
        return f"<table>{''.join(cells)}</table>"
    if isinstance(value, list) and len(value) > 8 and all(isinstance(part, float) for part in value):
        return f"{', '.join(f'{part:.3f}' for part in value[:8])} … {len(value)} numbers"
    return html.escape(f"{value:.3f}" if isinstance(value, float) else str(value))
