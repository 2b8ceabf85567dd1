"""Entities of token classifiers beside transformers' `TokenClassificationPipeline`, for each way to tag a word.

A small random model with MiniLM's vocabulary. transformers takes a piece for the inside of a word if it has another
number of characters than its part of the text, so no text has characters that the tokenizer drops or splits.
"""

import numpy as np
import pytest

from keras_bert_layers import load_task

pytestmark = pytest.mark.peers

TEXTS = [
    "Krzysztof Brzęczyszczykiewicz met Marie Skłodowska-Curie in São Tomé and Reykjavík.",
    "unbelievable antidisestablishmentarianism",
    "The xylophonist of Ouagadougou 😀 doesn't like e-mail, @user wrote; 3,14159 or $5?",
    "",
    "Rindfleischetikettierungsüberwachungsgesetz 中文 текст",
    "Paris",
]
LABELS = ("PER", "LOC", "MISC")
# The names of the tags, and the scheme that reads them as transformers does where it is not found so.
NAMES = {
    "bio": (["O", *(f"{letter}-{label}" for label in LABELS for letter in "BI")], None),
    "iob1": (["O", "I-PER", "B-LOC", "I-LOC", "I-MISC"], None),
    "io": (["O", *(f"I-{label}" for label in LABELS)], None),
    "plain": (["O", *LABELS], None),
    "mixed": (["B-PER", "I-PER", "B-LOC", "I-LOC", "O", "MISC"], None),
    "labels": (["NOUN", "VERB", "ADJ"], "io"),
    "numbers": (["LABEL_0", "LABEL_1", "LABEL_2"], "io"),
}
SCORE_TOLERANCE = 1e-4


@pytest.fixture(scope="module", params=NAMES)
def models(request, transformers, torch, minilm, tmp_path_factory):
    """transformers' model and tokenizer, and ours of the same files."""
    names, scheme = NAMES[request.param]
    path = tmp_path_factory.mktemp("model")
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm)
    torch.manual_seed(5)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=12,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=20,
        initializer_range=0.7,
        id2label=dict(enumerate(names)),
        label2id={name: index for index, name in enumerate(names)},
    )
    model = transformers.BertForTokenClassification(config).eval()
    with torch.no_grad():
        model.classifier.weight.normal_(0, 2)
        # Without what all pieces share, their tags differ.
        model.classifier.bias -= model(**tokenizer(TEXTS, return_tensors="pt", padding=True)).logits.mean((0, 1))
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return model, tokenizer, load_task(path, scheme=scheme)


@pytest.mark.parametrize("aggregation", ["simple", "first", "average", "max"])
@pytest.mark.usefixtures("traces_nothing")
def test_entities_are_those_of_the_pipeline(transformers, models, aggregation):
    model, tokenizer, classifier = models
    theirs = transformers.pipeline("ner", model=model, tokenizer=tokenizer, aggregation_strategy=aggregation)
    classifier.aggregation = aggregation
    answer = classifier.answer(TEXTS)
    num_found = 0
    for row, text in enumerate(TEXTS):
        expected = theirs(text)
        num_found += len(expected)
        starts, ends = ([len(text[: entity[side]].encode()) for entity in expected] for side in ("start", "end"))
        found = answer["entity_start"][row] >= 0
        assert answer["entity_start"][row][found].tolist() == starts
        assert answer["entity_end"][row][found].tolist() == ends
        assert answer["entity_label"][row][found].tolist() == [entity["entity_group"] for entity in expected]
        assert answer["entity_text"][row][found].tolist() == [
            text[entity["start"] : entity["end"]] for entity in expected
        ]
        np.testing.assert_allclose(
            answer["entity_score"][row][found], [entity["score"] for entity in expected], atol=SCORE_TOLERANCE
        )
    assert num_found > 10
