import re

import pytest

from keras_bert_layers.data import read_conll


def test_two_columns_and_no_empty_line_at_the_end(write):
    path = write("\ufeffNew\tB-place\r\nYork\tI-place\r\n\r\n \t\r\n!\tO", "names.conll")
    columns = read_conll(path)
    assert columns.names == ("words", "tags")
    assert columns == ([["New", "York"], ["!"]], [["B-place", "I-place"], ["O"]])


def test_four_columns_and_documents(write):
    content = (
        "-DOCSTART- -X- O O\n\nEU NNP  I-NP I-ORG \nrejects VBZ I-VP O\n-DOCSTART- -X- O O\nGerman JJ I-NP I-MISC\n"
    )
    columns = read_conll(write(content, compress=True))
    assert columns == ([["EU", "rejects"], ["German"]], [["B-ORG", "O"], ["B-MISC"]])


def test_other_columns(write):
    path = write("1|B-x|New York|_\n2|O|is|_\n")
    assert read_conll(path, delimiter="|", word_column=2, tag_column=-3) == ([["New York", "is"]], [["B-x", "O"]])


def test_comments_and_words_that_look_like_them(write):
    content = "# id 12\n#\n#\tO\n# 1\tB-x \n#tag\tI-x\n\n# only a comment\n\nrun\tO\n"
    assert read_conll(write(content)) == ([["#", "# 1", "#tag"], ["run"]], [["O", "B-x", "I-x"], ["O"]])
    assert read_conll(write("#one O\n#two O\n")) == ([["#one", "#two"]], [["O", "O"]])


def test_words_with_spaces(write):
    assert read_conll(write("a b\tO\n\u00a0c\tO\n")).words == [["a b", "\u00a0c"]]
    assert read_conll(write("a\u00a0b O\nc\u2028d O\n")).words == [["a\u00a0b", "c\u2028d"]]


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-x I-x O B-x B-y I-y", "B-x I-x O B-x B-y I-y"),
        ("I-x I-x O I-x B-x I-y", "B-x I-x O B-x B-x B-y"),  # IOB1
        ("S-x O B-x E-x B-y I-y E-y", "B-x O B-x I-x B-y I-y I-y"),  # BIOES
        ("U-x O B-x L-x I-x", "B-x O B-x I-x B-x"),  # BILOU, with an I- after the end
        ("S-x I-x E-y", "B-x B-x B-y"),
        ("B-a-b I-a-b I-a", "B-a-b I-a-b B-a"),
    ],
)
def test_tags_become_bio(write, tags, expected):
    path = write("".join(f"w\t{tag}\n" for tag in tags.split()))
    assert read_conll(path).tags == [expected.split()]


def test_no_entity_crosses_sentences(write):
    assert read_conll(write("a\tB-x\n\nb\tI-x\n")).tags == [["B-x"], ["B-x"]]


BAD = [
    ("b\n", "line 4: 1 columns where the first word has 2: ['b']. Every word needs a tag."),
    ("b\tO\tO\n", "line 4: 3 columns where the first word has 2"),
    ("b O\n", "line 4: 1 columns where the first word has 2: ['b O']"),
    ("\tO\n", "line 4: the word is empty. Fill or remove the line."),
    ("b\tb-x\n", "line 4: the tag 'b-x' must be O, or B- or I- with a type as in 'B-person'"),
    ("b\tB-\n", "line 4: the tag 'B-' must be O"),
    ("b\tB\n", "line 4: the tag 'B' must be O"),
    ("#b\tPERSON\n", "line 4: the tag 'PERSON' must be O"),
    (b"b\xff\tO\n", "line 4: byte 0xff is not UTF-8"),
]


@pytest.mark.parametrize(("line", "problem"), BAD)
def test_bad_line_leaves_out_its_sentence(write, line, problem):
    line = line.encode() if isinstance(line, str) else line
    path = write(b"a\tB-x\n\nstart\tO\n" + line + b"end\tX\n\nc\tO\n", "names.conll")
    with pytest.raises(ValueError, match=re.escape(f"{path}, {problem}")):
        read_conll(path)
    with pytest.warns(UserWarning, match="`read_conll`: left out 1 rows"):
        columns = read_conll(path, on_error="skip")
    assert columns.words == [["a"], ["c"]]
    assert columns.skipped[0].startswith(f"{path}, {problem}")


def test_words_only(write):
    with pytest.raises(ValueError, match="line 1: one column, 'a', where a word and its tag are needed. Is `delim"):
        read_conll(write("a\nb\n"))


def test_nothing_to_read(write):
    with pytest.raises(ValueError, match="no sentence to read."):
        read_conll(write("\n-DOCSTART- O\n\n"), on_error="skip")
    with pytest.raises(ValueError, match="no sentence to read."):
        read_conll(write(""))


def test_arguments(write):
    path = write("a O\n")
    with pytest.raises(
        ValueError, match="`tag_column` must be one of the 2 columns of .*data.csv. Received: tag_column=2"
    ):
        read_conll(path, tag_column=2)
    with pytest.raises(ValueError, match="`word_column` must be one of the 2 columns .* Received: word_column=-3"):
        read_conll(path, word_column=-3)
    with pytest.raises(
        ValueError, match="`delimiter` must be a string that is not empty, or None. Received: delimiter=''"
    ):
        read_conll(path, delimiter="")
    with pytest.raises(ValueError, match="`read_conll`: `on_error` must be one of"):
        read_conll(path, on_error="no")


@pytest.mark.parametrize(
    ("name", "num_rows", "num_words"),
    [("train", 3_394, 62_730), ("dev", 1_009, 15_733), ("test", 1_287, 23_394)],
)
def test_real_files(shared_data, name, num_rows, num_words):
    path = shared_data / "ner" / f"wnut17-{name}.conll"
    columns = read_conll(path)
    assert columns.num_rows == num_rows
    assert sum(map(len, columns.words)) == sum(map(len, columns.tags)) == num_words
    in_file = [line.split("\t")[1] for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    assert [tag for tags in columns.tags for tag in tags] == in_file
    assert {tag.partition("-")[2] for tag in in_file} == {
        *("", "corporation", "creative-work", "group", "location", "person", "product")
    }
