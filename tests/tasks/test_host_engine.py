"""A task on the host's text engine, as where tensorflow-text is not installed."""

import numpy as np

from keras_bert_layers import BertClassifier, BertPreprocessor, BertTokenizer

TEXTS = np.array(["a good film", "unhappy, bad!", "", "Film?"])
LABELS = np.array(["good", "bad", "bad", "good"])


def test_fit_evaluate_predict_and_answer(backbone, vocabulary, host_engine, preprocessor):
    """With the ids of the other engine: `preprocessor` is made without the fixture."""
    own = BertPreprocessor(BertTokenizer(vocabulary), max_length=9)
    assert isinstance(own.tokenizer._encoder._word_pieces._model, host_engine.WordPieceModel)
    task = BertClassifier(backbone, class_names=["bad", "good"], preprocessor=own)
    task.compile(optimizer="sgd", run_eagerly=True)  # which spares the test five graphs
    history = task.fit(TEXTS[:2], LABELS[:2], verbose=0).history
    assert np.isfinite([history["loss"][0], task.evaluate(TEXTS, LABELS, verbose=0, return_dict=True)["loss"]]).all()
    logits = task.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(logits, task.predict(preprocessor(TEXTS), verbose=0), atol=1e-5)  # float32
    assert task.answer(TEXTS)["label"].tolist() == [["bad", "good"][row.argmax()] for row in logits]
