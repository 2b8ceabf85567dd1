import numpy as np
import pytest

from keras_bert_layers.visualization import TextHighlights

TEXT = "Zoë 😀 saw שלום."


@pytest.fixture
def token_classifier(backbone, preprocessor):
    from keras_bert_layers import BertTokenClassifier

    return BertTokenClassifier(backbone, ["O", "B-x", "I-x"], preprocessor=preprocessor)


@pytest.fixture
def question_answerer(backbone, preprocessor):
    from keras_bert_layers import BertQuestionAnswerer
    from keras_bert_layers.preprocessing import SpanPreprocessor

    return BertQuestionAnswerer(backbone, SpanPreprocessor(preprocessor.tokenizer, max_length=12, stride=2))


def byte_positions(text, part):
    start = len(text[: text.index(part)].encode())
    return start, start + len(part.encode())


def test_entities_come_in_bytes_and_are_marked_in_characters(token_classifier, monkeypatch):
    (first, first_end), (second, end) = byte_positions(TEXT, "Zoë"), byte_positions(TEXT, "שלום")
    answer = {
        "entity_start": np.array([[first, second, -1]]),
        "entity_end": np.array([[first_end, end, -1]]),
        "entity_label": np.array([["person", "word", ""]], object),
        "entity_score": np.array([[0.75, 0.5, -1.0]]),
    }
    monkeypatch.setattr(type(token_classifier), "answer", lambda self, texts: answer)
    picture = TextHighlights.from_entities(token_classifier, TEXT)
    assert picture.spans == [(0, 3, "person", 0.75), (10, 14, "word", 0.5)]
    assert TEXT[10:14] == "שלום"


def test_entities_of_a_real_model_lie_in_the_text(token_classifier):
    for text in ("a good Film, happy night", "", "😀"):
        picture = TextHighlights.from_entities(token_classifier, text)
        found = token_classifier.answer([text])["entity_text"][0]
        assert [text[start:end] for start, end, *_ in picture.spans] == [part for part in found if part]


def test_answer_is_marked(question_answerer):
    context = "😀 a good Film, happy night"
    picture = TextHighlights.from_answer(question_answerer, "film?", context)
    answer = question_answerer.answer((["film?"], [context]))["answer"][0]
    assert [context[start:end] for start, end, *_ in picture.spans] == [answer]
    assert picture.title == "film?"
    picture = TextHighlights.from_answer(question_answerer, "film?", "")  # which holds no answer
    assert picture.spans == []
    assert "Probability that the text holds no answer: " in picture.html()


def test_marks_carry_their_label_and_the_rest_is_kept():
    page = TextHighlights(TEXT, [(10, 14, "word", None), (0, 3, "name", 0.5)]).html()
    assert page.index("<small>name</small>") < page.index("<small>word</small>")
    assert "</mark> 😀 saw <mark" in page
    assert "</mark>.</p>" in page


@pytest.mark.parametrize("span", [(0, 0, "x", None), (3, 2, "x", None), (-1, 2, "x", None), (0, 16, "x", None)])
def test_spans_outside_of_the_text(span):
    with pytest.raises(ValueError, match="`spans` must be in the 15 characters of the text and not overlap. Rec"):
        TextHighlights(TEXT, [span])


def test_spans_that_overlap():
    with pytest.raises(ValueError, match=r"not overlap. Received: spans=\(2, 4, 'y', 1.0\)"):
        TextHighlights(TEXT, [(2, 4, "y", 1.0), (0, 3, "x", 1.0)])


def test_wrong_models_and_texts(token_classifier, question_answerer):
    with pytest.raises(TypeError, match="`model` must be a BertTokenClassifier. Received"):
        TextHighlights.from_entities(question_answerer, "a")
    with pytest.raises(TypeError, match="`model` must be a BertQuestionAnswerer. Received"):
        TextHighlights.from_answer(token_classifier, "a", "b")
    with pytest.raises(TypeError, match="`text` must be a string. Received: text=3"):
        TextHighlights.from_entities(token_classifier, 3)
    with pytest.raises(TypeError, match=r"`context` must be a string. Received: context=\['b'\]"):
        TextHighlights.from_answer(question_answerer, "a", ["b"])
