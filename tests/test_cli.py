"""The command line, mostly in this process: what it prints, its exit codes, its errors in one line."""

import importlib.util
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from keras_bert_layers import cli

TEXTS = ["a good film", "bad, bad night", "good"]
QUESTIONS = [("a good ?", "a bad film"), ("night", "good, good films")]


@pytest.fixture(scope="module")
def huggingface():
    """The module `checkpoints/huggingface_checkpoint.py`: writes small random checkpoints."""
    path = Path(__file__).parent / "checkpoints" / "huggingface_checkpoint.py"
    spec = importlib.util.spec_from_file_location("huggingface_checkpoint", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="module")
def classifier(huggingface, folder):
    """A small checkpoint that states a task."""
    config = {**huggingface.CONFIG, **huggingface.CLASSIFIER}
    return huggingface.write(
        folder / "classifier", config=config, tensors=huggingface.random_tensors(prefix="bert.", head=3)
    )


@pytest.fixture(scope="module")
def encoder(huggingface, folder):
    """A small checkpoint without a task."""
    return huggingface.write(folder / "encoder")


def with_head(huggingface, path, architecture, head):
    tensors = huggingface.random_tensors(prefix="bert.")
    rng = np.random.default_rng(3)
    for name, shape in head.items():
        tensors[name] = rng.normal(0, 0.3, shape).astype("float32")
    return huggingface.write(path, config={**huggingface.CONFIG, "architectures": [architecture]}, tensors=tensors)


@pytest.fixture(scope="module")
def saved(classifier, folder):
    """The same classifier as a `.keras` file and as a SavedModel, both by the command line."""
    for name, layout in (("classifier.keras", "keras"), ("exported", "saved-model")):
        assert run("convert", classifier, folder / name, "--to", layout) == 0
    return folder / "classifier.keras", folder / "exported"


@pytest.fixture(scope="module")
def opened():
    """What was loaded once, by its arguments."""
    return {}


@pytest.fixture
def loaded_once(opened, monkeypatch):
    """Every model is loaded once for all tests that use this."""
    from keras_bert_layers._cli import answerers, compare

    def remembering(module, name):
        load = getattr(module, name)

        def remember(source, *words, **options):
            key = name, str(source), words
            if key not in opened:
                opened[key] = load(source, *words, **options)
            return opened[key]

        monkeypatch.setattr(module, name, remember)

    remembering(answerers, "open_answerer")
    remembering(compare, "load_model")


def run(*words):
    return cli.main([str(word) for word in words])


def told(capsys):
    """The one line on stderr."""
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1, captured.err
    return captured.err


def answers(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


class TestConvert:
    @pytest.mark.parametrize("layout", ["huggingface", "google", "kerashub"])
    def test_layout_keeps_head_and_tokenizer(self, classifier, tmp_path, capsys, layout):
        import keras_bert_layers as kbl

        assert run("convert", classifier, tmp_path / "new" / layout, "--to", layout) == 0
        printed = capsys.readouterr()
        assert printed.out == f"{tmp_path / 'new' / layout}: BertClassifier, 4,412 parameters\n"
        one, other = (kbl.load_task(path) for path in (classifier, tmp_path / "new" / layout))
        assert all(np.array_equal(a, b) for a, b in zip(one.get_weights(), other.get_weights(), strict=True))
        assert one.class_names == other.class_names
        assert other.preprocessor.get_config()["max_length"] == 17

    def test_encoder(self, encoder, tmp_path, capsys):
        assert run("convert", encoder, tmp_path / "b.keras", "--to", "keras") == 0
        assert "warning: the .keras file of an encoder has no tokenizer" in told(capsys)
        assert run("convert", tmp_path / "b.keras", tmp_path / "b", "--to", "google") == 0
        assert sorted(path.name for path in (tmp_path / "b").iterdir()) == [
            "bert_config.json",
            "bert_model.ckpt.data-00000-of-00001",
            "bert_model.ckpt.index",
        ]

    def test_encoder_of_a_task(self, classifier, tmp_path, capsys):
        assert run("convert", classifier, tmp_path / "b", "--to", "huggingface", "--task", "encoder") == 0
        assert "BertBackbone" in capsys.readouterr().out
        assert json.loads((tmp_path / "b" / "config.json").read_text())["architectures"] == ["BertModel"]

    def test_missing_vocabulary(self, huggingface, tmp_path, capsys):
        source = huggingface.write(tmp_path / "source", vocabulary=None)
        assert run("convert", source, tmp_path / "b", "--to", "huggingface") == 2
        assert "must hold a vocab.txt or a tokenizer.json" in told(capsys)
        assert not (tmp_path / "b").exists()
        assert run("convert", source, tmp_path / "b", "--to", "huggingface", "--no-tokenizer") == 0

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["--to", "saved-model"], "a SavedModel needs a task and a tokenizer"),
            (["--to", "huggingface", "--task", "classifier"], "--task must be one that the checkpoint was trained for"),
            (["--to", "keras"], "DEST must end in .keras"),
        ],
    )
    def test_refuses(self, encoder, tmp_path, capsys, words, message):
        assert run("convert", encoder, tmp_path / "new", *words) == 2
        assert f"keras-bert-layers: error: `convert`: {message}" in told(capsys)
        assert list(tmp_path.iterdir()) == []

    def test_no_source(self, tmp_path, capsys):
        assert run("convert", tmp_path / "absent", tmp_path / "new" / "b", "--to", "google") == 2
        assert "`source` must be an existing directory" in told(capsys)
        assert list(tmp_path.iterdir()) == []

    def test_other_machine(self, encoder, capsys):
        assert run("convert", encoder, "gs://bucket/b", "--to", "google") == 2
        assert "`DEST` must be a local path" in told(capsys)

    def test_destination_is_replaced_only_when_asked(self, encoder, tmp_path, capsys):
        place = tmp_path / "b"
        place.mkdir()
        (place / "config.json").write_text("{}")
        assert run("convert", encoder, place, "--to", "huggingface") == 2
        assert "DEST must be new" in told(capsys)
        assert (place / "config.json").read_text() == "{}"
        assert run("convert", encoder, place, "--to", "huggingface", "--force") == 0
        assert (place / "model.safetensors").is_file()
        assert [path.name for path in tmp_path.iterdir()] == ["b"]

    def test_only_models_are_replaced(self, encoder, tmp_path, capsys):
        (tmp_path / "thesis").mkdir()
        (tmp_path / "thesis" / "chapter.tex").write_text("x")
        assert run("convert", encoder, tmp_path / "thesis", "--to", "huggingface", "--force") == 2
        assert "--force replaces models only" in told(capsys)
        assert (tmp_path / "thesis" / "chapter.tex").read_text() == "x"

    @pytest.mark.parametrize("old", [False, True])
    def test_interrupted(self, encoder, tmp_path, capsys, monkeypatch, old):
        def interrupted(path, tensors, **options):
            path.write_bytes(b"half")
            raise KeyboardInterrupt

        import keras_bert_layers.checkpoints.save_huggingface  # noqa: F401

        module = sys.modules["keras_bert_layers.checkpoints.save_huggingface"]
        monkeypatch.setattr(module, "write_safetensors", interrupted)
        if old:
            (tmp_path / "b").mkdir()
            (tmp_path / "b" / "config.json").write_text("old")
        assert run("convert", encoder, tmp_path / "b", "--to", "huggingface", "--force") == 130
        assert told(capsys) == "keras-bert-layers: interrupted: nothing half-written is left.\n"
        assert [path.name for path in tmp_path.rglob("*")] == (["b", "config.json"] if old else [])

    def test_error_that_nobody_expected_shows_its_traceback(self, encoder, tmp_path, capsys, monkeypatch):
        import keras_bert_layers.checkpoints.save_huggingface  # noqa: F401

        module = sys.modules["keras_bert_layers.checkpoints.save_huggingface"]
        monkeypatch.setattr(module, "write_safetensors", lambda *words, **options: {}["absent"])
        assert run("convert", encoder, tmp_path / "b", "--to", "huggingface") == 2
        assert "Traceback" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []

    def test_progress_on_a_terminal_only(self, encoder, tmp_path, capsys, monkeypatch):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        assert run("convert", encoder, tmp_path / "b", "--to", "huggingface") == 0
        shown = capsys.readouterr().err
        assert "Reading" in shown
        assert "Writing" in shown


class TestInspect:
    def test_of_a_task(self, classifier, capsys):
        assert run("inspect", classifier, "--json") == 0
        facts = json.loads(capsys.readouterr().out)
        assert (facts["layout"], facts["parameters"], facts["problems"]) == ("huggingface", 4412, {})
        assert facts["tasks"][0]["name"] == "classifier"
        assert facts["tasks"][0]["options"]["class_names"] == ["bad", "fair", "good"]
        assert facts["tokenizer"] == {
            "vocabulary_size": 18,
            "lowercase": True,
            "strip_accents": None,
            "split_chinese": True,
            "reference": "huggingface",
            "max_length": 17,
        }
        assert len(facts["weights"]) == 41
        assert {
            "ours": "encoder_block_1/attention/query_key_value/kernel",
            "part": "key",
            "stored": "bert.encoder.layer.1.attention.self.key.weight",
            "dtype": "F32",
            "shape": [15, 15],
        } in facts["weights"]

    def test_for_people(self, encoder, capsys):
        assert run("inspect", encoder) == 0
        shown = capsys.readouterr().out
        assert "task        none stated: an encoder\nparameters  4,364\n" in shown
        assert "  hidden_dim           15\n" in shown
        assert "pooler/dense/kernel " in shown
        assert " pooler.dense.weight " in shown

    @pytest.mark.parametrize("layout", ["google", "kerashub"])
    def test_of_other_layouts(self, encoder, tmp_path, capsys, layout):
        assert run("convert", encoder, tmp_path / "b", "--to", layout) == 0
        capsys.readouterr()
        assert run("inspect", tmp_path / "b", "--json") == 0
        facts = json.loads(capsys.readouterr().out)
        assert (facts["layout"], facts["parameters"], facts["problems"]) == (layout, 4364, {})
        assert facts["tokenizer"]["vocabulary_size"] == 18
        assert len(facts["weights"]) == 39

    def test_of_a_keras_file(self, saved, capsys):
        assert run("inspect", saved[0], "--json") == 0
        facts = json.loads(capsys.readouterr().out)
        assert (facts["layout"], facts["parameters"]) == ("keras", 4412)
        assert facts["tasks"][0]["name"] == "BertClassifier"
        assert facts["config"]["hidden_dim"] == 15
        assert facts["tokenizer"]["vocabulary_size"] == 18

    def test_says_what_is_wrong(self, huggingface, tmp_path, capsys):
        tensors = huggingface.random_tensors()
        tensors["extra.weight"] = tensors.pop("encoder.layer.1.output.dense.bias")
        source = huggingface.write(tmp_path / "b", tensors=tensors, vocabulary=None)
        assert run("inspect", source) == 0
        shown = capsys.readouterr().out
        assert "encoder_block_1/feed_forward/output/bias" in shown
        assert " not there " in shown
        assert "extra.weight  F32    15     no place for it: loading fails" in shown
        assert "must hold a vocab.txt or a tokenizer.json" in shown

    def test_weights_that_are_not_there(self, encoder, huggingface, tmp_path, capsys):
        source = huggingface.write(tmp_path / "b")
        (source / "model.safetensors").unlink()
        assert run("inspect", source) == 0
        assert "parameters  `inspect`: " in capsys.readouterr().out

    def test_refuses(self, tmp_path, capsys):
        (tmp_path / "x.keras").write_bytes(b"no zip")
        assert run("inspect", tmp_path / "x.keras") == 2
        assert "is not a whole .keras file" in told(capsys)
        assert run("inspect", tmp_path / "y.keras") == 2
        assert "no such file" in told(capsys)


@pytest.mark.usefixtures("loaded_once")
class TestPredict:
    def test_three_kinds_of_model_give_the_same_lines(self, classifier, saved, capsys):
        shown = []
        for model in (classifier, *saved):
            assert run("predict", model, *TEXTS) == 0
            captured = capsys.readouterr()
            assert captured.err == ""
            shown.append([json.loads(line) for line in captured.out.splitlines()])
        assert [answer["label"] for answer in shown[0]] == [answer["label"] for answer in shown[1]]
        for others in shown[1:]:
            for answer, other in zip(shown[0], others, strict=True):
                assert answer.keys() == other.keys()
                # Another graph may add in another order.
                np.testing.assert_allclose(answer["probabilities"], other["probabilities"], atol=1e-6)
        assert set(shown[0][0]) == {"label", "probabilities"}

    def test_order_and_batches(self, saved, tmp_path, capsys):
        (tmp_path / "texts.txt").write_text("\n".join(TEXTS * 3) + "\n", encoding="utf-8")
        assert run("predict", saved[1], "--file", tmp_path / "texts.txt", "--batch-size", "2") == 0
        found = answers(capsys)
        assert len(found) == 9
        assert run("predict", saved[1], *TEXTS) == 0
        for answer, expected in zip(found, answers(capsys) * 3, strict=True):
            np.testing.assert_allclose(answer["probabilities"], expected["probabilities"], atol=1e-6)

    def test_stdin_is_answered_while_it_comes(self, saved, capsys, monkeypatch):
        seen = []

        class Lines(io.RawIOBase):
            """Gives a line at a time, and notes how many answers were there before."""

            def readable(self):
                return True

            def readinto(self, buffer):
                seen.append(capsys.readouterr().out.count("\n"))
                if len(seen) > 4:
                    return 0
                buffer[:7] = b"a good\n"
                return 7

        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Lines(), 7)))
        assert run("predict", saved[1], "-", "--batch-size", "2") == 0
        assert sum(seen) + len(answers(capsys)) == 4
        assert seen[2] + seen[3] == 2, "two answers before the third line"

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"good\nb\xffd\n", "line 2 of stdin: byte 0xff is not UTF-8"),
            (b'{"text": 3}\n', "text in line 1 of stdin must be a string. Received: 3"),
            (b'{"text": "a"}\n{"txt": "a"}\n', "line 2 of stdin must be a JSON object with text"),
            (b"good\n", "line 1 of stdin must be JSON"),
        ],
    )
    def test_bad_lines_are_named(self, saved, capsys, monkeypatch, content, message):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        form = "lines" if b"\xff" in content else "jsonl"
        assert run("predict", saved[1], "--format", form) == 2
        assert f"error: `predict`: {message}" in told(capsys)

    def test_questions(self, huggingface, tmp_path, capsys):
        head = {"qa_outputs.weight": (2, 15), "qa_outputs.bias": (2,)}
        model = with_head(huggingface, tmp_path / "qa", "BertForQuestionAnswering", head)
        assert run("predict", model, *QUESTIONS[0], *QUESTIONS[1]) == 0
        expected = answers(capsys)
        assert [set(answer) for answer in expected] == [
            {"answer", "score", "start", "end", "no_answer_probability"}
        ] * 2
        (tmp_path / "q.tsv").write_text("".join(f"{q}\t{c}\n" for q, c in QUESTIONS))
        (tmp_path / "q.jsonl").write_text(
            "".join(json.dumps({"id": 1, "context": c, "question": q}) + "\n" for q, c in QUESTIONS)
        )
        for name in ("q.tsv", "q.jsonl"):
            assert run("predict", model, "--file", tmp_path / name) == 0
            assert answers(capsys) == expected
        assert run("predict", model, "one") == 2
        assert "TEXT must come as question and context in turn" in told(capsys)
        (tmp_path / "q.tsv").write_text("a film\n")
        assert run("predict", model, "--file", tmp_path / "q.tsv") == 2
        assert "must hold question and context. Received: 1 column(s)" in told(capsys)
        assert run("predict", model, "good " * 30, "a film") == 2
        assert "row 1 of the arguments: " in told(capsys)

    def test_choices(self, huggingface, tmp_path, capsys):
        head = {"classifier.weight": (1, 15), "classifier.bias": (1,)}
        model = with_head(huggingface, tmp_path / "choice", "BertForMultipleChoice", head)
        rows = [("a film", ["good", "bad"]), ("night", ["good", "bad", "unhappy"])]
        (tmp_path / "c.tsv").write_text("".join("\t".join([prompt, *choices]) + "\n" for prompt, choices in rows))
        assert run("predict", model, "--file", tmp_path / "c.tsv") == 0
        found = answers(capsys)
        assert [len(answer["probabilities"]) for answer in found] == [2, 3]
        assert run("predict", model, "a film", "good", "bad") == 0
        assert answers(capsys)[0]["choice"] == found[0]["choice"]

    def test_entities_do_not_depend_on_the_rows_beside(self):
        from keras_bert_layers._cli.answer_lines import answer_lines
        from keras_bert_layers._cli.text_rows import TextRow

        found = {
            "entity_text": np.array([[b"a", b"b"], [b"", b""]], object),
            "entity_start": np.array([[0, 5], [-1, -1]], np.int32),
            "entity_score": np.array([[0.1, np.nan], [-1, -1]], np.float32),
        }
        lines = list(answer_lines(found, [TextRow("", ("x",)), TextRow("", ("y",))], {"text": 1}))
        assert [json.loads(line) for line in lines] == [
            {"entity_score": [0.1, None], "entity_start": [0, 5], "entity_text": ["a", "b"]},
            {"entity_score": [], "entity_start": [], "entity_text": []},
        ]

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["a", "--batch-size", "0"], "`--batch-size` must be at least 1"),
            (["a", "--file", "b"], "not from both"),
            (["--file", "absent.txt"], "no such file: absent.txt"),
            (["a", "--task", "masked_lm"], "--task is for checkpoints"),
        ],
    )
    def test_refuses(self, saved, capsys, words, message):
        assert run("predict", saved[1], *words) == 2
        assert message in told(capsys)

    def test_refuses_what_answers_nothing(self, encoder, tmp_path, capsys):
        assert run("predict", encoder, "a") == 2
        assert "MODEL must have a task and a tokenizer" in told(capsys)
        (tmp_path / "saved_model.pb").write_bytes(b"no program")
        assert run("predict", tmp_path, "a") == 2
        assert "is not a whole SavedModel" in told(capsys)

    def test_closed_pipe_ends_quietly(self, saved, capsys, monkeypatch):
        class Closed(io.StringIO):
            def write(self, text):
                raise BrokenPipeError

        monkeypatch.setattr(sys, "stdout", Closed())
        assert run("predict", saved[1], "a") == 141
        assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("loaded_once")
class TestCompare:
    @pytest.fixture
    def texts(self, tmp_path):
        (tmp_path / "texts.txt").write_text("\n".join([*TEXTS, "中 É x"]) + "\n", encoding="utf-8")
        return tmp_path / "texts.txt"

    def test_the_same(self, classifier, saved, texts, capsys):
        assert run("compare", classifier, saved[0], "--texts", texts, "--json") == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["rows"], found["rows_with_other_ids"], found["agree"]) == (4, 0, True)
        assert found["largest_differences"] == {"logits": 0.0}

    def test_other_weights(self, encoder, huggingface, texts, tmp_path, capsys):
        tensors = huggingface.random_tensors()
        tensors["pooler.dense.bias"][3] += 0.5
        other = huggingface.write(tmp_path / "b", tensors=tensors)
        assert run("compare", encoder, other, "--texts", texts, "--batch-size", "3") == 1
        shown = capsys.readouterr().out.splitlines()
        assert shown[:2] == ["other ids: 0 of 4 rows", "sequence_output: largest difference 0"]
        assert shown[-1] == "differ (tolerance 1e-05)"
        assert run("compare", encoder, other, "--texts", texts, "--tolerance", "0.6") == 0

    def test_other_tokenizer(self, encoder, huggingface, texts, tmp_path, capsys):
        other = huggingface.write(tmp_path / "b")
        huggingface.write_json(other / "tokenizer_config.json", {"do_lower_case": False})
        assert run("compare", encoder, other, "--texts", texts) == 1
        assert f"other ids: 1 of 4 rows, first line 4 of {texts}\n" in capsys.readouterr().out

    def test_encoders_where_one_states_no_task(self, classifier, encoder, texts, capsys):
        assert run("compare", classifier, encoder, "--texts", texts, "--json") == 0
        assert set(json.loads(capsys.readouterr().out)["largest_differences"]) == {"sequence_output", "pooled_output"}

    def test_refuses(self, encoder, huggingface, texts, tmp_path, capsys):
        assert run("compare", encoder, encoder, "--texts", tmp_path / "absent") == 2
        assert "no such file" in told(capsys)
        assert run("compare", encoder, encoder, "--texts", texts, "--tolerance", "-1") == 2
        assert "`--tolerance` must be at least 0" in told(capsys)
        texts.write_text("")
        assert run("compare", encoder, encoder, "--texts", texts) == 2
        assert "must hold at least one line" in told(capsys)


@pytest.mark.parametrize("command", [[], ["convert"], ["inspect"], ["predict"], ["compare"]])
def test_help_has_examples(command, capsys):
    with pytest.raises(SystemExit) as end:
        run(*command, "--help")
    assert end.value.code == 0
    shown = capsys.readouterr().out
    assert ("examples:\n" in shown) or ("exit codes:\n" in shown)


@pytest.mark.parametrize("words", [[], ["transform"], ["convert", "a", "b"], ["convert", "a", "b", "--to", "onnx"]])
def test_arguments_that_do_not_parse(words, capsys):
    with pytest.raises(SystemExit) as end:
        run(*words)
    assert end.value.code == 2
    assert told(capsys).startswith("keras-bert-layers: error: ")


def test_debug_shows_the_traceback(tmp_path, capsys):
    assert run("inspect", tmp_path / "absent", "--debug") == 2
    assert "Traceback" in capsys.readouterr().err


def test_program_in_a_process_of_its_own(encoder):
    """It is installed, says what is wrong in UTF-8, and looks at a checkpoint without Keras and TensorFlow."""
    program = Path(sys.executable).with_name("keras-bert-layers")
    if not program.is_file():
        pytest.skip("the package is not installed with its program")
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    shown = subprocess.run(
        [program, "inspect", encoder], capture_output=True, text=True, encoding="utf-8", check=False, env=environment
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    code = (
        "import sys; from keras_bert_layers import cli; code = cli.main(sys.argv[1:]);"
        "sys.exit(code or any(name in sys.modules for name in ('keras', 'tensorflow', 'torch')))"
    )
    subprocess.run([sys.executable, "-c", code, "inspect", encoder], capture_output=True, check=True)


def test_terminated_process_leaves_nothing(encoder, tmp_path):
    """And TensorFlow's own words at its start are not to be seen, while those of an error are."""
    code = (
        "import os, signal, sys; from keras_bert_layers import cli\n"
        "import keras_bert_layers._cli.convert as convert\n"
        "convert._WRITERS['huggingface'] = lambda *words: os.kill(os.getpid(), signal.SIGTERM)\n"
        "cli.run()"
    )
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    words = ["convert", encoder, tmp_path / "b", "--to", "huggingface"]
    shown = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False, env=environment
    )
    assert (shown.returncode, shown.stderr) == (128 + signal.SIGTERM, "")
    assert list(tmp_path.iterdir()) == []
