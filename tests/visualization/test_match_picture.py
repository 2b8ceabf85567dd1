import re

import pytest

from keras_bert_layers import BertMultiVectorEncoder
from keras_bert_layers.tasks import TokenMatch
from keras_bert_layers.visualization import MatchPicture

MATCHES = [
    TokenMatch("[CLS]", "[CLS]", 0.9, -1, -1),
    TokenMatch("rain", "rain", 0.75, 7, 11),
    TokenMatch("<b>", "ümit", 0.5, 0, 5),
    TokenMatch("wet", "rain", 0.25, 7, 11),
    TokenMatch("[MASK]", "##s", -0.5, 11, 12),
]
DOCUMENT = "ümit, rains <p>"


def test_parts_are_marked_by_what_they_add():
    page = MatchPicture(MATCHES, DOCUMENT).html()
    found = re.findall(r"<mark [^>]* (\d+)%, [^>]*><bdi[^>]*>([^<]*)</bdi>\u00a0<small><bdi[^>]*>([^<]*)<", page)
    assert found == [("50", "ümit", "&lt;b&gt;"), ("100", "rain", "rain, wet"), ("0", "s", "[MASK]")]
    text = re.sub("<small>.*?</small>|<[^>]*>", "", re.search('<p class="text".*?</p>', page)[0])
    assert text.replace("\u00a0", "") == "ümit, rains &lt;p&gt;"
    assert "The score is 1.900." in page
    assert page.count("<tr>") == 1 + len(MATCHES)


@pytest.mark.usefixtures("traces_nothing")
def test_of_a_model(backbone, preprocessor):
    encoder = BertMultiVectorEncoder(backbone, 5, preprocessor=preprocessor)
    picture = MatchPicture.from_model(encoder, "good film", "a bad film, unhappy")
    assert picture.matches == encoder.explain("good film", "a bad film, unhappy")
    assert "good film" in picture.html()
    assert MatchPicture([], "").html().count("<mark") == 0


def test_refusals():
    with pytest.raises(TypeError, match="`matches` must be a TokenMatch"):
        MatchPicture(["rain"], DOCUMENT)
    with pytest.raises(ValueError, match="`matches` must be in the document"):
        MatchPicture(MATCHES, "ümit, rain")
    with pytest.raises(TypeError, match="`model` must be a BertMultiVectorEncoder"):
        MatchPicture.from_model(None, "a", "a")
