"""`TextCorpus`: its rows, which depend only on the seed and the epoch."""

import pickle

import pytest
import tensorflow as tf

from keras_bert_layers.data import DocumentFiles, TextCorpus
from keras_bert_layers.data.pretraining.text_corpus import in_order


@pytest.fixture
def corpus(blank_lines, tokenizer, rule):
    def corpus(*, seed=5, block_bytes=40, **options):
        files = DocumentFiles(blank_lines(**options), separated_by="blank_lines", block_bytes=block_bytes)
        return TextCorpus(files, tokenizer, rule=rule, max_length=7, seed=seed)

    return corpus


def test_rows(corpus, rows_of, tokenizer):
    rows = rows_of(corpus().dataset(0))
    assert len(rows) == 5
    row = next(row for row in rows if len(row["token_ids"]) == 7 and row["segment_ids"][-1])
    assert row["token_ids"] == [2, *tokenizer.tokenize("a good film bad night ,").numpy().tolist()]
    assert row["segment_ids"] == [0, 0, 0, 0, 1, 1, 1]
    assert row["padding_mask"] == [1, 1, 1, 1, 2, 2, 2], "the numbers of the texts"
    assert row["label"] in {0, 1}
    assert len({row["row"] for row in rows}) == 5
    assert {row["row"] & 0xFFF_FFFF for row in rows} <= {0, 1, 2}


def test_types(corpus):
    row = next(iter(corpus().dataset(0)))
    kinds = {name: (value.dtype.name, len(value.shape)) for name, value in row.items()}
    sequences = dict.fromkeys(("token_ids", "segment_ids", "padding_mask"), ("int32", 1))
    assert kinds == {**sequences, "label": ("int32", 0), "row": ("int64", 0)}


def test_seed_and_epoch_decide(corpus, rows_of):
    rows = rows_of(corpus().dataset(0))
    assert rows_of(corpus().dataset(0)) == rows
    assert rows_of(corpus().dataset(1)) != rows
    assert rows_of(corpus(seed=6).dataset(0)) != rows
    as_tensor = tf.data.Dataset.range(2).flat_map(corpus().dataset)
    assert rows_of(as_tensor) == rows + rows_of(corpus().dataset(1))


def test_order(corpus, rows_of):
    """Blocks, and rows in a block, come in another order every epoch."""
    one_block, blocks = corpus(block_bytes=1000), corpus()
    epochs = [rows_of(one_block.dataset(epoch)) for epoch in range(3)]
    orders = {tuple(row["row"] for row in rows) for rows in epochs}
    assert orders == {(0, 1, 2, 3, 4)}, "rows are numbered in their order"
    assert len({tuple(len(row["token_ids"]) for row in rows) for rows in epochs}) > 1
    orders = {tuple(row["row"] >> 28 for row in rows_of(blocks.dataset(epoch))) for epoch in range(4)}
    assert len(orders) > 1


def test_documents_without_tokens(write, tokenizer, rule, rows_of):
    files = DocumentFiles(write("\n \n", "corpus.txt"), separated_by="lines")
    corpus = TextCorpus(files, tokenizer, rule=rule, max_length=7)
    assert rows_of(corpus.dataset(0)) == []


def test_stops_early(corpus):
    for _ in range(3):
        assert len(list(corpus().dataset(0).take(1))) == 1


def test_pickle(corpus, rows_of):
    other = pickle.loads(pickle.dumps(corpus()))
    assert rows_of(other.dataset(2)) == rows_of(corpus().dataset(2))


def test_reads_no_further_than_needed():
    read = []

    def items():
        for item in range(100):
            read.append(item)
            yield item

    results = in_order(lambda item: item * item, items(), num_threads=2)
    assert [next(results) for _ in range(3)] == [0, 1, 4]
    assert len(read) <= 6
    results.close()


def test_errors(corpus, tokenizer, rule, tmp_path):
    files = corpus().documents
    with pytest.raises(TypeError, match="`documents` must be a DocumentFiles"):
        TextCorpus("corpus.txt", tokenizer, rule=rule)
    with pytest.raises(TypeError, match="`tokenizer` must be a BertTokenizer"):
        TextCorpus(files, "bert", rule=rule)
    with pytest.raises(TypeError, match="`rule` must be a rule such as"):
        TextCorpus(files, tokenizer, rule=type(rule))
    with pytest.raises(ValueError, match="`seed` must be at most"):
        TextCorpus(files, tokenizer, rule=rule, seed=2**63)
    with pytest.raises(ValueError, match="`max_length` must be at least 1"):
        TextCorpus(files, tokenizer, rule=rule, max_length=0)
