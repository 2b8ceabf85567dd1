"""`vocabulary train`, `extend` and `prune`: their files, their output and their errors."""

import json

import numpy as np
import pytest

TEXTS = "a good film\nbad night, good night\n\nunhappy 中\n"
WORDS = "nights\n\n Goodness \nnights\n"


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text(TEXTS, encoding="utf-8")
    return path


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text(WORDS, encoding="utf-8")
    return path


@pytest.mark.usefixtures("traces_nothing")
def test_train(run, corpus, tmp_path, capsys):
    from tokenizers import Tokenizer

    import keras_bert_layers as kbl

    to = tmp_path / "new"
    assert run("vocabulary", "train", corpus, "--size", 140, "--to", to) == 0
    printed = capsys.readouterr().out
    tokenizer = kbl.load_tokenizer(to)
    assert printed.startswith(f"{to}: {tokenizer.vocabulary_size()} tokens, ")
    ids = tokenizer.tokenize(TEXTS.splitlines()).to_list()
    assert tokenizer.unknown_id not in {token for row in ids for token in row}
    library = Tokenizer.from_file(str(to / "tokenizer.json"))
    assert [library.encode(text, add_special_tokens=False).ids for text in TEXTS.splitlines()] == ids
    settings = json.loads((to / "tokenizer_config.json").read_text())
    assert (settings["do_lower_case"], settings["model_max_length"]) == (True, 512)
    assert run("vocabulary", "train", corpus, "--to", to, "--cased", "--force") == 0
    assert not kbl.load_tokenizer(to).lowercase


@pytest.mark.peers
def test_transformers_reads_a_trained_tokenizer(run, corpus, tmp_path):
    transformers = pytest.importorskip("transformers")
    import keras_bert_layers as kbl

    assert run("vocabulary", "train", corpus, "--to", tmp_path / "new") == 0
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "new")
    assert isinstance(theirs, transformers.BertTokenizer)
    texts = [*TEXTS.splitlines(), "Góód [MASK] unhappily"]
    ids = kbl.load_tokenizer(tmp_path / "new").tokenize(texts).to_list()
    assert theirs(texts, add_special_tokens=False)["input_ids"] == ids


@pytest.mark.parametrize("layout", ["huggingface", "google", "kerashub", "keras"])
@pytest.mark.usefixtures("traces_nothing")
def test_extend_keeps_the_layout(run, classifier, words, tmp_path, capsys, layout):
    import keras_bert_layers as kbl

    source, to = tmp_path / f"old.{layout}", tmp_path / f"new.{layout}"
    assert run("convert", classifier, source, "--to", layout) == 0
    capsys.readouterr()
    assert run("vocabulary", "extend", source, words, "--to", to) == 0
    assert capsys.readouterr().out == (
        "tokens: 18 -> 20\n"
        "pieces per word of words.txt: 2.000 -> 1.000\n"
        "size: 0.0 -> 0.0 MB as float32\n"
        f"{to}: BertClassifier, 2,695 parameters\n"
    ), "the checkpoint has spare rows"
    if to.is_dir():
        assert {path.name for path in source.iterdir()} == {path.name for path in to.iterdir()}
    old, new = kbl.load_task(source), kbl.load_task(to)
    assert new.preprocessor.tokenizer.tokenize(["goodness", "nights"]).to_list() == [[19], [18]]
    texts = ["a good film", "bad night"]
    np.testing.assert_array_equal(new.predict(texts, verbose=0), old.predict(texts, verbose=0))


@pytest.mark.usefixtures("traces_nothing")
def test_prune_an_encoder(run, encoder, corpus, tmp_path, capsys):
    import keras_bert_layers as kbl

    to = tmp_path / "new"
    assert run("vocabulary", "prune", encoder, corpus, "--to", to) == 0
    assert "tokens: 18 -> 13\n" in capsys.readouterr().out
    assert kbl.load_backbone(to).config.vocabulary_size == 13
    assert run("vocabulary", "prune", encoder, corpus, "--to", to, "--tokens", 8, "--force") == 0
    printed = capsys.readouterr()
    assert "tokens: 18 -> 8\n" in printed.out
    assert "warning: `prune_vocabulary`: `num_tokens` leaves out" in printed.err
    assert kbl.load_tokenizer(to).vocabulary_size() == 8


@pytest.mark.parametrize(
    ("verb", "options", "message"),
    [
        ("extend", [], "`words` must hold words that the tokenizer does not split. Received: words=3 words. 'a good"),
        ("prune", ["--tokens", "3"], "`num_tokens` must be at least 6"),
    ],
)
def test_an_error_leaves_nothing(run, error_line, encoder, corpus, tmp_path, verb, options, message):
    assert run("vocabulary", verb, encoder, corpus, "--to", tmp_path / "new" / "b", *options) == 2
    assert message in error_line()
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.txt"]


def test_refuses(run, error_line, encoder, keras_file, corpus, tmp_path):
    assert run("vocabulary", "train", tmp_path / "absent.txt", "--to", tmp_path / "new") == 2
    assert "`vocabulary`: no such file" in error_line()
    assert run("vocabulary", "prune", keras_file, corpus, "--to", tmp_path / "new") == 2
    assert "`DIR` must end in .keras, as MODEL does" in error_line()
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("x")
    assert run("vocabulary", "prune", encoder, corpus, "--to", tmp_path / "thesis") == 2
    assert "DIR must be new" in error_line()
    assert run("vocabulary", "prune", encoder, corpus, "--to", tmp_path / "thesis", "--force") == 2
    assert "--force replaces models only" in error_line()
    (tmp_path / "latin.txt").write_bytes(b"a\n\xe9\n")
    assert run("vocabulary", "prune", encoder, tmp_path / "latin.txt", "--to", tmp_path / "new") == 2
    assert "line 2 of" in error_line()


def test_debug_stands_after_the_verb_too(run, encoder, corpus, tmp_path, capsys):
    assert run("vocabulary", "train", tmp_path / "absent", "--to", tmp_path / "new", "--debug") == 2
    assert "Traceback" in capsys.readouterr().err
