import pytest

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.sentence_transformers.modules import (
    read_prompts,
    read_truncation,
    side_prompts,
    unused_prompts,
)

# What releases 5.7 and 6.2 write of a model without prompts, and of one with two.
EMPTY = {"model_type": "SentenceTransformer", "prompts": {"document": "", "query": ""}, "default_prompt_name": None}
PROMPTS = {"document": "passage: ", "query": "query: "}


@pytest.fixture
def root(huggingface, tmp_path):
    """Writes the file and gives its folder."""

    def root(**values):
        huggingface.write_json(tmp_path / "config_sentence_transformers.json", values)
        return tmp_path

    return root


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, {}),
        (EMPTY, {}),
        ({"prompts": None}, {}),
        ({**EMPTY, "default_prompt_name": "query"}, {}),
        ({**EMPTY, "prompts": PROMPTS}, {"prompts": PROMPTS}),
        (
            {"prompts": {"s": "x ", "t": None}, "default_prompt_name": "s"},
            {"prompts": {"s": "x ", "t": ""}, "default_prompt": "s"},
        ),
        ({"prompts": {"s": "x "}, "default_prompt_name": "document"}, {"prompts": {"s": "x "}}),
    ],
)
def test_prompts(root, values, expected):
    assert read_prompts(root(**values)) == expected


def test_no_file(tmp_path):
    assert read_prompts(tmp_path) == {}
    assert read_truncation(tmp_path) is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"prompts": ["x"]}, r"`prompts` must be a JSON object"),
        ({"prompts": {"s": 3}}, r"a prompt must be a string\. Received: s=3"),
        ({"prompts": PROMPTS, "default_prompt_name": "s"}, r"`default_prompt_name` must be one of .*Received: 's'"),
    ],
)
def test_wrong_prompts(root, values, message):
    with pytest.raises(CheckpointError, match=rf"config_sentence_transformers\.json: {message}"):
        read_prompts(root(**values))


def test_prompts_of_a_dual_encoder():
    assert side_prompts({"prompts": {**PROMPTS, "other": "x"}}) == {"prompts": PROMPTS}
    assert side_prompts({"prompts": {"query": "", "other": "x"}}) == side_prompts({}) == {}


def test_a_prompt_for_documents_that_no_method_uses(tmp_path):
    (text,) = unused_prompts(tmp_path, {"query": "query: ", "passage": "passage: ", "document": ""})
    assert "without the prompt 'passage: '" in text
    assert "Give `predict` prompt='passage'" in text
    assert unused_prompts(tmp_path, {"passage": "passage: ", "document": "passage: "}) == ()
    assert unused_prompts(tmp_path, PROMPTS) == ()


def test_truncation(root):
    assert read_truncation(root(truncate_dim=7)) == 7
    assert read_truncation(root(truncate_dim=None)) is None
    with pytest.raises(CheckpointError, match=r"`truncate_dim` must be an integer of at least 1\. Received: 0"):
        read_truncation(root(truncate_dim=0))
