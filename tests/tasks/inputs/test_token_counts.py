import tensorflow as tf

from keras_bert_layers.tasks.inputs._cut_texts import num_special_tokens, token_counts


def test_lengths_of_every_kind_of_rows(tokenizer):
    texts = tf.constant(["good", "unhappy film !", ""])
    assert token_counts(tokenizer, texts).numpy().tolist() == [1, 4, 0]
    negatives = tf.constant([["bad", ""], ["a bad", "night"], ["", ""]])
    assert token_counts(tokenizer, (texts, negatives)).numpy().tolist() == [2, 7, 0]
    words = tf.ragged.constant([["good", "unhappy"], [], ["film"]])
    assert token_counts(tokenizer, words).numpy().tolist() == [3, 0, 1]


def test_special_tokens_are_those_of_the_preprocessor(tokenizer, preprocessor):
    pair = (["good"], ["bad film"])
    for texts in (pair[0], pair):
        columns = texts if isinstance(texts, tuple) else (texts,)
        num_tokens = int(token_counts(tokenizer, tuple(map(tf.constant, columns)))[0])
        kept = int(preprocessor(texts)["padding_mask"].numpy().sum())
        assert num_tokens + num_special_tokens(tokenizer, len(columns)) == kept
