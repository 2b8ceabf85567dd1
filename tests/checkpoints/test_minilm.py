"""all-MiniLM-L6-v2 on real text: its score on STS-B, and independence from padding and from the batch."""

import csv
import gzip

import numpy as np
import pytest

from keras_bert_layers import load_task

# Measured here with sentence-transformers' pooling of the same weights: 86.72.
STS_B_SPEARMAN = 0.867
# Float32 sums over other widths: padding adds exact zeros, but in another order.
COMPANY_TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def encoder(minilm):
    return load_task(minilm)


@pytest.mark.slow
def test_sts_b_spearman(encoder, shared_data):
    pandas = pytest.importorskip("pandas")
    with gzip.open(shared_data / "glue" / "STS-B" / "dev.tsv.gz", "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    cosines = encoder.predict(([row["sentence1"] for row in rows], [row["sentence2"] for row in rows]), verbose=0)
    scores = pandas.Series([float(row["score"]) for row in rows])
    assert len(rows) == 1500
    assert pandas.Series(cosines).rank().corr(scores.rank()) >= STS_B_SPEARMAN


def test_company_and_padding_change_nothing(encoder):
    texts = ["short", "a somewhat longer sentence , with commas", "word " * 200, ""]
    together = encoder.preprocessor(texts)
    hidden = np.array(encoder.backbone(together)["sequence_output"])
    rubbish = {key: np.array(value) for key, value in together.items()}
    padding = rubbish["padding_mask"] == 0
    rubbish["token_ids"][padding] = 12_345
    rubbish["segment_ids"][padding] = 1
    with_rubbish = np.array(encoder.backbone(rubbish)["sequence_output"])
    for row, text in enumerate(texts):
        alone = np.array(encoder.backbone(encoder.preprocessor([text]))["sequence_output"])[0]
        np.testing.assert_allclose(hidden[row, : len(alone)], alone, atol=COMPANY_TOLERANCE)
        np.testing.assert_allclose(with_rubbish[row, : len(alone)], alone, atol=COMPANY_TOLERANCE)


def test_a_row_of_padding_gives_finite_numbers(encoder):
    ids = {key: np.zeros((2, 5), "int32") for key in ("token_ids", "segment_ids", "padding_mask")}
    ids["padding_mask"][0, :3] = 1
    assert np.isfinite(np.array(encoder.backbone(ids)["sequence_output"])).all()
    assert np.isfinite(np.array(encoder(ids))).all()
