import pytest

from keras_bert_layers.checkpoints.huggingface.families.family import UNREAD
from keras_bert_layers.checkpoints.huggingface.families.table import FAMILIES

BERT, DISTILBERT, ELECTRA, XLM_ROBERTA, *_ = FAMILIES


@pytest.mark.parametrize(
    ("family", "bert_class", "table", "file"),
    [
        (DISTILBERT, "BertModel", "encoder.layer.10.output.dense.bias", "transformer.layer.10.ffn.lin2.bias"),
        (
            DISTILBERT,
            "BertForMaskedLM",
            "encoder.layer.0.attention.output.dense.weight",
            "distilbert.transformer.layer.0.attention.out_lin.weight",
        ),
        (DISTILBERT, "BertForMaskedLM", "cls.predictions.bias", "vocab_projector.bias"),
        (DISTILBERT, "BertForSequenceClassification", "pooler.dense.bias", "pre_classifier.bias"),
        (DISTILBERT, "BertForTokenClassification", "classifier.bias", "classifier.bias"),
        (ELECTRA, "BertForMaskedLM", "embeddings_project.bias", "electra.embeddings_project.bias"),
        (
            ELECTRA,
            "BertForMaskedLM",
            "cls.predictions.transform.LayerNorm.bias",
            "generator_predictions.LayerNorm.bias",
        ),
        (ELECTRA, "BertForSequenceClassification", "classifier.weight", "classifier.out_proj.weight"),
        (ELECTRA, "BertForMultipleChoice", "pooler.dense.weight", "sequence_summary.summary.weight"),
        (XLM_ROBERTA, "BertForSequenceClassification", "pooler.dense.weight", "classifier.dense.weight"),
        (XLM_ROBERTA, "BertForMultipleChoice", "pooler.dense.weight", "roberta.pooler.dense.weight"),
        (XLM_ROBERTA, "BertModel", "pooler.dense.weight", "pooler.dense.weight"),
        (XLM_ROBERTA, "BertForMaskedLM", "cls.predictions.bias", "lm_head.bias"),
        (BERT, "BertForQuestionAnswering", "qa_outputs.bias", "qa_outputs.bias"),
    ],
)
def test_names_both_ways(family, bert_class, table, file):
    assert family.names.file_name(table, bert_class) == file
    assert family.names.table_name(file) == table


def test_a_pooler_beside_a_head_with_its_own():
    names = ["roberta.pooler.dense.bias", "classifier.dense.bias", "classifier.out_proj.bias"]
    assert XLM_ROBERTA.names.unread_poolers(names) == {"roberta.pooler.dense.bias"}
    assert XLM_ROBERTA.names.unread_poolers(names[:1]) == set()
    assert XLM_ROBERTA.names.unread_poolers(names[1:]) == set()
    assert "does not read" in XLM_ROBERTA.names.ignored_reason(UNREAD + names[0])


def test_reasons():
    assert "replaced tokens" in ELECTRA.names.ignored_reason("discriminator_predictions.dense.bias")
    assert DISTILBERT.names.ignored_reason("discriminator_predictions.dense.bias") is None


def test_one_name_for_the_bias_of_a_decoder_of_its_own():
    name = "cls.predictions.decoder.bias"
    files = [family.names.file_name(name, "BertForMaskedLM") for family in FAMILIES]
    assert files == [
        name,
        "vocab_projector.bias",
        "generator_lm_head.bias",
        *["lm_head.decoder.bias"] * 3,
        "decoder.bias",
        name,
        *["lm_head.decoder.bias"] * 2,
        "predictions.decoder.bias",
        name,
    ]


@pytest.mark.parametrize(
    ("family", "names", "kinds"),
    [
        (BERT, ["classifier.bias"], ["Sequence", "Token", "Choice"]),
        (DISTILBERT, ["classifier.bias"], ["Token"]),
        (DISTILBERT, ["pre_classifier.bias", "classifier.bias"], ["Sequence", "Choice"]),
        (ELECTRA, ["classifier.dense.bias", "classifier.out_proj.bias"], ["Sequence"]),
        (ELECTRA, ["sequence_summary.summary.bias", "classifier.bias"], ["Choice"]),
        (XLM_ROBERTA, ["classifier.dense.bias", "classifier.out_proj.bias"], ["Sequence"]),
        (XLM_ROBERTA, ["roberta.pooler.dense.bias", "classifier.bias"], ["Token", "Choice"]),
    ],
)
def test_what_a_classifier_classifies(family, names, kinds):
    classes = {"Sequence": "SequenceClassification", "Token": "TokenClassification", "Choice": "MultipleChoice"}
    assert [kind for kind, name in classes.items() if family.names.may_have(f"BertFor{name}", names)] == kinds
