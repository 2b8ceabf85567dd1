"""`ReportPicture`: a classification report with its confusion matrix and worst errors."""

from keras_bert_layers._internal import checks
from keras_bert_layers.tasks import ClassificationError, ClassificationReport
from keras_bert_layers.visualization import _colors as colors
from keras_bert_layers.visualization import _html as html
from keras_bert_layers.visualization.picture import Picture

# Of the largest weight of a text; what weighs less is not marked.
_LEAST = 0.25


class ReportPicture(Picture):
    """The confusion matrix, a table of the classes, and the worst errors with the tokens that decided them.

    A marked token counts: without it, the probability of the predicted class falls ("for") or rises ("against").

    Args:
        report: what `BertClassifier.report` returned.
        title: heading.
        note: what the picture shows.

    Raises:
        TypeError: `report` is something else.

    Examples:
        >>> import numpy as np
        >>> confusion = np.array([[2, 1], [0, 3]])
        >>> report = ClassificationReport(["bad", "good"], 6, 5 / 6, confusion, {}, [], 0.0, 128)
        >>> "83 % of 6 texts" in ReportPicture(report).html()
        True
    """

    def __init__(self, report: ClassificationReport, *, title: str = "Right and wrong", note: str = ""):
        checks.instance(type(self).__name__, "report", report, ClassificationReport)
        super().__init__(title=title, note=note)
        self.report = report

    def _body(self) -> list[html.Element]:
        report = self.report
        cut = f"{html.percent(report.share_cut)} are longer than {report.max_length} tokens and were cut."
        facts = f"{html.percent(report.accuracy)} of {report.num_texts} texts are right. {cut}"
        body = [html.element("p", facts), self._confusion(), self._classes()]
        for error in self.report.errors:
            body += _described(error)
        return body

    def _confusion(self) -> html.Element:
        names, rows = self.report.class_names, []
        for name, counts in zip(names, self.report.confusion.tolist(), strict=True):
            total = max(sum(counts), 1)
            cells = (html.number(str(count), f"s{colors.step_of(count / total)}") for count in counts)
            rows.append([html.isolated(name), *cells])
        caption = "Texts by their class (rows) and the predicted class (columns)."
        return html.table(caption, ["class", *map(html.isolated, names)], rows)

    def _classes(self) -> html.Element:
        columns = ("precision", "recall", "f1-score")
        rows = [
            [
                html.isolated(name),
                *(html.number(f"{row[column]:.3f}") for column in columns),
                html.number(f"{row['support']:.0f}"),
            ]
            for name, row in self.report.per_class.items()
        ]
        return html.table("Each class.", ["class", *columns, "texts"], rows)


def _described(error: ClassificationError) -> list[html.Element]:
    """A line of facts, and the words of the text and the columns beside it with the decisive ones marked."""
    facts = html.element(
        "p",
        f"Row {error.row}: ",
        html.isolated(error.label),
        f" ({html.percent(error.label_probability)}), predicted ",
        html.isolated(error.predicted),
        f" ({html.percent(error.probability)}); marked for or against it:",
    )
    words, weights = (error.words, error.word_weights) if error.words else (error.tokens, error.weights)
    cut, words, weights = 2 * len(words), [*words, *error.columns], [*weights, *error.column_weights]
    largest = max(map(abs, weights), default=0.0)
    pieces: list[html.Element | str] = []
    for word, weight in zip(words, weights, strict=True):
        if largest and abs(weight) >= _LEAST * largest:
            side, style = ("for", "c0") if weight > 0 else ("against", "c1")
            pieces += [
                html.element("mark", html.isolated(word), "\u00a0", html.element("small", side), class_=style),
                " ",
            ]
        else:
            pieces += [html.isolated(word), " "]
    parts = [part for part in (pieces[:cut], pieces[cut:]) if part]
    return [facts, *(html.element("p", *part, class_="text", translate="no") for part in parts)]
