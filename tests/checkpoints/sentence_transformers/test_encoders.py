import pytest

from keras_bert_layers import BertBackbone, BertSentenceEncoder, load_task, save_huggingface
from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.sentence_transformers.modules import encoder_heads

PROMPTS = {"query": "query: ", "document": "", "other": "x"}


def test_a_dual_encoder_has_the_prompts_of_its_sides(our_models, tmp_path):
    task = BertSentenceEncoder(BertBackbone(our_models.CONFIG), prompts=PROMPTS, default_prompt="other")
    root = save_huggingface(task, tmp_path / "x")
    sentence_encoder, dual_encoder = encoder_heads(root, hidden_dim=15)
    shared = {"pooling": "mean", "normalize": True}
    assert sentence_encoder.options == {**shared, "prompts": PROMPTS, "default_prompt": "other"}
    assert (dual_encoder.name, dual_encoder.options) == ("dual_encoder", {**shared, "prompts": {"query": "query: "}})


@pytest.mark.parametrize("options", [{"truncate_dim": 5}, {"projection_dim": 7}], ids=str)
def test_no_dual_encoder_drops_what_it_does_not_have(our_models, tmp_path, options):
    root = save_huggingface(BertSentenceEncoder(BertBackbone(our_models.CONFIG), **options), tmp_path / "x")
    assert [head.name for head in encoder_heads(root, hidden_dim=15)] == ["sentence_encoder"]
    with pytest.raises(CheckpointError, match=r"which a BertDualEncoder does not have\. Load the task \"sentence_enc"):
        load_task(root, "dual_encoder", preprocessor=None)
