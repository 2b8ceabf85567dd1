import re

from keras_bert_layers.visualization import AttentionLines


def test_lines_go_where_the_attention_goes():
    page = AttentionLines(["a", "b", "c"], [[0.98, 0.01, 0.01], [0.0, 0.5, 0.5], [0.2, 0.3, 0.5]]).html()
    lines = re.findall(r'<polyline class="c0 f(\d)"[^>]* points="[\d.]+,[\d.]+ [\d.]+,([\d.]+)"', page)
    assert [row for row, _ in lines] == ["0", "1", "1", "2", "2", "2"]
    assert [end for row, end in lines if row == "1"] == ["65.0", "91.0"]  # the rows of b and c


def test_one_token_can_be_chosen():
    page = AttentionLines(["a", "b"], [[0.5, 0.5], [0.5, 0.5]]).html()
    name = re.search(r'<fieldset id="(kbl-\w+)">', page)[1]
    assert page.count(f'<input type="radio" name="{name}"') == 3
    assert f'#{name}:has([value="1"]:checked) ~ .scroll polyline:not(.f1) {{ display: none; }}' in page
    other = AttentionLines(["a", "b"], [[0.5, 0.5], [1.0, 0.0]]).html()
    assert name not in other, "two pictures on one page are two choices"


def test_largest_shares_are_named():
    page = AttentionLines(["a", "b", "c", "d"], [[0.1, 0.2, 0.3, 0.4]] * 4).html()
    row = re.search(r'<tr><th scope="row"><bdi dir="ltr" translate="no">a</bdi></th>(.*?)</tr>', page)[1]
    assert re.sub(r"<[^>]+>", "", row.replace("</td>", ", ")) == "d 40 %, c 30 %, b 20 %, "
    assert "then to" not in AttentionLines(["a"], [[1.0]]).html()
