"""Entities of kinds that are only named when asking: what a model that was trained on other kinds finds.

    python tests/benchmarks/named_entities.py --contender typed --seed 0 --data ../shared/data/ner

WNUT-17 has six kinds of entities. Two are held apart (`--held product,creative-work`): no sentence that holds one of
them is trained on, and their names are never seen. The test file is then asked for all six by name, and F1 is that of
exact spans of the two. Every span of at most eight words is a candidate; of those that overlap, the best one stays.

`nearest` trains only a detector: is this span an entity? An entity gets the name whose frozen vector has the highest
cosine with the frozen vector of the entity's text. `typed` trains the detector and, on the same encoder, a vector of
each span that shall be near the frozen vector of its name; its detector is measured with the nearest names too.
`given` trains nothing: the nearest names of the right spans.
`matched` scores each pair of a span and a name, without a detector. `prompted` does so too, but reads the names in
front of the sentence, as GLiNER does, so that they and the words see each other; names are left out at random, so that
the model must read them.

Of the sentences without entities, every third is trained on. Names are paraphrased in training, one drawn per step.
Two epochs, with the embedding and two blocks frozen; the rest is as in `finetune_wnut.py`. Prints JSON lines.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import _recipe as recipe
import finetune_wnut as wnut
import numpy as np

MAX_WORDS = 8
LOWEST = -3.0  # the logit of a candidate that is looked at
BATCH_SIZE = 16
PEAK_RATE = 2e-4
NAMES = {
    "person": ["person", "human being", "name of a person", "individual", "celebrity or politician"],
    "location": ["location", "place", "city or country", "geographic region", "address"],
    "group": ["group", "music band", "sports team", "club", "association of people"],
    "corporation": ["corporation", "company", "business", "firm", "enterprise"],
    "product": ["product", "consumer good", "device", "article for sale", "brand of goods"],
    "creative-work": ["creative work", "work of art", "title of a film", "title of a book", "song"],
}
KINDS = list(NAMES)
FIRST_TRAINED = "encoder_block_2"
ALONE = ("matched", "prompted")  # without a detector

Spans = dict[tuple[int, int], str]  # the first and the last word of an entity, and its kind


class Sentence(NamedTuple):
    """A sentence as the model reads it: tokens, the places of each word's first and last piece, and the entities."""

    words: list[str]
    token_ids: np.ndarray
    first: np.ndarray
    last: np.ndarray
    spans: Spans


def spans_of(tags: list[str]) -> Spans:
    """The entities of a row of BIO tags."""
    spans: Spans = {}
    for word, tag in enumerate(tags):
        if tag.startswith("B-"):
            begin = word
        if tag != "O":
            spans.pop((begin, word - 1), None)
            spans[begin, word] = tag[2:]
    return spans


def read(path: Any, preprocessor: Any) -> list[Sentence]:
    """The sentences of a file."""
    import tensorflow as tf

    from keras_bert_layers.preprocessing.preprocessors.word_aligner import WordAligner

    aligner = WordAligner(preprocessor)
    sentences = []
    for words, tags in wnut.read_conll(path):
        pieces = aligner.align_pieces(tf.ragged.constant([words]))
        ids, places = pieces.word_ids.numpy()[0], pieces.places.numpy()[0]
        first = np.array([places[ids == word][0] for word in range(len(words))])
        last = np.array([places[ids == word][-1] for word in range(len(words))])
        sentences.append(Sentence(words, pieces.inputs["token_ids"].numpy()[0], first, last, spans_of(tags)))
    return sentences


class Batch(NamedTuple):
    """Padded tokens `(rows, tokens)`, and all candidates of all rows: the row, words and first and last place."""

    token_ids: np.ndarray
    spans: list[tuple[int, int, int]]
    first: np.ndarray
    last: np.ndarray


def batch_of(sentences: list[Sentence], prefix: np.ndarray) -> Batch:
    """The tokens and the candidates of sentences, each after the tokens of a prefix."""
    rows = [np.concatenate([prefix, sentence.token_ids[min(len(prefix), 1) :]]) for sentence in sentences]
    width, shift = max(map(len, rows)), max(len(prefix) - 1, 0)
    token_ids = np.stack([np.pad(row, (0, width - len(row))) for row in rows])
    spans, first, last = [], [], []
    for row, sentence in enumerate(sentences):
        for begin in range(len(sentence.words)):
            for end in range(begin, min(begin + MAX_WORDS, len(sentence.words))):
                spans.append((row, begin, end))
                first.append(row * width + shift + sentence.first[begin])
                last.append(row * width + shift + sentence.last[end])
    return Batch(token_ids.astype("int32"), spans, np.array(first, "int32"), np.array(last, "int32"))


class Model:
    """The encoder and the two small heads: is a span an entity, and how near is it to each name."""

    def __init__(self, backbone: Any, contender: str):
        import keras

        hidden_dim = backbone.config.hidden_dim
        self.backbone, self.contender = backbone, contender
        self.hidden = keras.layers.Dense(128, activation="relu")
        self.entity = keras.layers.Dense(1, bias_initializer=keras.initializers.Constant(-4.0))
        self.change = keras.layers.Dense(hidden_dim, kernel_initializer="zeros")  # starts as the mean of the span
        self.scale = keras.Variable(10.0)
        self.bias = keras.Variable(-6.0)
        for layer, width in ((self.hidden, 3 * hidden_dim), (self.entity, 128), (self.change, 3 * hidden_dim)):
            layer.build((None, width))

    def variables(self) -> list[Any]:
        """What is trained."""
        detector = [*self.hidden.variables, *self.entity.variables]
        namer = [*self.change.variables, self.scale]
        heads = {"nearest": detector, "typed": detector + namer}.get(self.contender, [*namer, self.bias])
        return [v for v in self.backbone.trainable_variables if not v.path.startswith("pooler")] + heads

    def encode(self, token_ids: Any, training: bool) -> Any:
        """The vectors of tokens."""
        import tensorflow as tf

        token_ids = tf.convert_to_tensor(token_ids)
        mask = tf.cast(token_ids != 0, "int32")
        inputs = {"token_ids": token_ids, "segment_ids": tf.zeros_like(token_ids), "padding_mask": mask}
        return self.backbone(inputs, training=training)["sequence_output"]

    def names(self, token_ids: Any) -> Any:
        """The unit vectors of names."""
        import tensorflow as tf

        mask = tf.cast(token_ids != 0, "float32")[:, :, None]
        return tf.linalg.l2_normalize(tf.reduce_sum(self.encode(token_ids, False) * mask, 1), 1)

    def score(self, token_ids: Any, first: Any, last: Any, names: Any, training: bool) -> tuple[Any, Any]:
        """The logits "this is an entity" `(spans,)` and of the names `(spans, names)`."""
        import tensorflow as tf

        vectors = self.encode(token_ids, training)
        flat = tf.reshape(vectors, [-1, vectors.shape[-1]])
        sums = tf.concat([tf.zeros_like(flat[:1]), tf.cumsum(flat)], 0)
        count = tf.cast(last - first + 1, "float32")[:, None]
        mean = (tf.gather(sums, last + 1) - tf.gather(sums, first)) / count
        all_three = tf.concat([tf.gather(flat, first), tf.gather(flat, last), mean], 1)
        entity = self.entity(self.hidden(all_three))[:, 0]
        span = tf.linalg.l2_normalize(mean + self.change(all_three), 1)
        if self.contender == "prompted":  # of the tokens of names, the same in every row, to means of each row
            prefix = tf.cast(names, "float32")
            means = tf.linalg.l2_normalize(tf.einsum("np,bpd->bnd", prefix, vectors[:, : tf.shape(names)[1]]), 2)
            cosine = tf.einsum("sd,snd->sn", span, tf.gather(means, first // tf.shape(vectors)[1]))
        else:
            cosine = tf.matmul(span, names, transpose_b=True)
        return entity, self.scale * cosine + (0.0 if self.contender == "typed" else self.bias)

    def loss(self, entity: Any, kind: Any, target: Any) -> Any:
        """The sum over spans; `target` is the kind of each, -1 for none."""
        import tensorflow as tf

        if self.contender in ALONE:
            wanted = tf.one_hot(target, tf.shape(kind)[1])
            return tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(wanted, kind))
        found = tf.cast(target >= 0, "float32")
        loss = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(found, entity))
        if self.contender == "typed":
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.maximum(target, 0), kind)
            loss += tf.reduce_sum(found * each)
        return loss


def prefix_of(names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of names as one prefix, `[CLS] name [SEP] name [SEP]`, and which of them are of each name."""
    parts = [row[row != 0][1:] for row in names]
    owner = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    tokens = np.concatenate([names[0, :1], *parts])
    is_name = (np.arange(len(parts))[:, None] == owner) & (tokens[1:] != names[0, names[0] != 0][-1])
    return tokens, np.pad(is_name, ((0, 0), (1, 0))).astype("int32")


def train(model: Model, rows: list[Sentence], seen: list[str], names: np.ndarray, options: Any) -> None:
    """The recipe; `names` are the token ids of all names, in the order of `NAMES`."""
    import tensorflow as tf

    from keras_bert_layers.optimizers import WarmupLinearDecay, adamw

    lengths = [len(row.token_ids) for row in rows]
    steps = recipe.draw_batches(lengths, batch_size=BATCH_SIZE, num_epochs=options.epochs, seed=options.seed)
    variables = model.variables()
    optimizer = adamw(WarmupLinearDecay(PEAK_RATE, len(steps), num_warmup_steps=len(steps) // 10))
    optimizer.build(variables)
    frozen = model.names(names)

    @tf.function(reduce_retracing=True)
    def step(token_ids: Any, first: Any, last: Any, target: Any, drawn: Any) -> Any:
        with tf.GradientTape() as tape:
            vectors = drawn if model.contender == "prompted" else tf.gather(frozen, drawn)
            entity, kind = model.score(token_ids, first, last, vectors, True)
            loss = model.loss(entity, kind, target) / BATCH_SIZE
        gradients = tape.gradient(loss, variables)
        optimizer.apply(gradients, variables)
        return loss

    random, per_kind, losses = np.random.default_rng(options.seed), len(NAMES["person"]), []
    start = time.perf_counter()
    prompted = model.contender == "prompted"
    for number, places in enumerate(steps):
        sentences = [rows[place] for place in places]
        asked = list(random.permutation(seen)[: random.integers(1, len(seen) + 1) if prompted else None])
        drawn = np.array([KINDS.index(kind) * per_kind + random.integers(per_kind) for kind in asked], "int32")
        prefix, columns = prefix_of(names[drawn]) if prompted else (names[0, :0], drawn)
        batch = batch_of(sentences, prefix)
        kinds = [sentences[row].spans.get((begin, end)) for row, begin, end in batch.spans]
        target = np.array([asked.index(kind) if kind in asked else -1 for kind in kinds], "int32")
        losses.append(float(step(batch.token_ids, batch.first, batch.last, target, columns)))
        if number % 50 == 0:
            recipe.say(
                f"step {number}/{len(steps)} loss {np.mean(losses[-50:]):.3f} after {time.perf_counter() - start:.0f} s"
            )


def predict(
    model: Model, rows: list[Sentence], names: Any, prefix: np.ndarray
) -> list[list[tuple[float, int, int, np.ndarray]]]:
    """For each row its candidates that do not overlap: score, first and last word, and a score for each name."""
    import tensorflow as tf

    score = tf.function(lambda *arguments: model.score(*arguments, False), reduce_retracing=True)
    found: list[list] = [[] for _ in rows]
    order = sorted(range(len(rows)), key=lambda row: len(rows[row].token_ids))
    for places in recipe.in_batches(len(rows), BATCH_SIZE):
        chosen = [order[place] for place in places]
        batch = batch_of([rows[row] for row in chosen], prefix)
        entity, kinds = (part.numpy() for part in score(batch.token_ids, batch.first, batch.last, names))
        best = kinds.max(1) if model.contender in ALONE else entity
        for logit, (row, begin, end), kind in zip(best, batch.spans, kinds, strict=True):
            if logit > LOWEST:
                found[chosen[row]].append((1 / (1 + np.exp(-logit)), begin, end, kind))
    return [apart(row) for row in found]


def apart(candidates: list) -> list:
    """The candidates that overlap none of a higher score, best first."""
    taken: list = []
    for span in sorted(candidates, key=lambda span: -span[0]):
        if not any(span[1] <= end and begin <= span[2] for _, begin, end, _ in taken):
            taken.append(span)
    return taken


def f1_of(rows: list[Sentence], found: list[Spans], kinds: list[str]) -> dict[str, float]:
    """F1, precision and recall of the exact spans of these kinds, in percent."""
    wanted = {(row, *span, kind) for row, one in enumerate(rows) for span, kind in one.spans.items() if kind in kinds}
    got = {(row, *span, kind) for row, one in enumerate(found) for span, kind in one.items() if kind in kinds}
    right = len(wanted & got)
    return {
        "f1": round(200 * right / max(len(wanted) + len(got), 1), 2),
        "precision": round(100 * right / max(len(got), 1), 2),
        "recall": round(100 * right / max(len(wanted), 1), 2),
    }


def recall_of(rows: list[Sentence], found: list[Spans], kinds: list[str]) -> float:
    """The share of spans of these kinds that were found, under whatever name, in percent."""
    wanted = [(row, span) for row, one in enumerate(rows) for span, kind in one.spans.items() if kind in kinds]
    return round(100 * sum(span in found[row] for row, span in wanted) / len(wanted), 2)


def nearest(rows: list[Sentence], candidates: list, encoder: Any, names: np.ndarray) -> list:
    """The candidates with the cosines of the frozen vectors of their texts as the scores of names."""
    texts = sorted(
        {" ".join(row.words[b : e + 1]) for row, one in zip(rows, candidates, strict=True) for _, b, e, _ in one}
    )
    vectors = dict(zip(texts, encoder.predict(texts, verbose=0), strict=True))
    return [
        [(score, b, e, names @ vectors[" ".join(row.words[b : e + 1])]) for score, b, e, _ in one]
        for row, one in zip(rows, candidates, strict=True)
    ]


def measure(rows: list[Sentence], candidates: list, held: list[str]) -> dict[str, Any]:
    """F1 on kinds that were held apart and on the others, at 0.5 and at the best of the thresholds for the test."""

    def at(threshold: float, asked: list[int]) -> list[Spans]:
        return [
            {(b, e): KINDS[asked[int(kinds[asked].argmax())]] for score, b, e, kinds in one if score >= threshold}
            for one in candidates
        ]

    everything, two = list(range(len(KINDS))), [KINDS.index(kind) for kind in held]
    found = at(0.5, everything)
    any_kind = [dict.fromkeys(row, "entity") for row in found]
    gold = [row._replace(spans=dict.fromkeys(row.spans, "entity")) for row in rows]
    tried = {threshold: f1_of(rows, at(threshold, everything), held)["f1"] for threshold in np.arange(0.05, 1, 0.05)}
    best = max(tried, key=lambda threshold: tried[threshold])
    return {
        "held": f1_of(rows, found, held),
        "seen": f1_of(rows, found, [kind for kind in KINDS if kind not in held]),
        "each": {kind: f1_of(rows, found, [kind])["f1"] for kind in KINDS},
        "spans of any kind": f1_of(gold, any_kind, ["entity"])["f1"],
        "held, found with any name": recall_of(rows, found, held),
        "held, best threshold": [round(float(best), 2), tried[best]],
        "held, only two asked": f1_of(rows, at(0.5, two), held)["f1"],
    }


def main() -> None:
    """Reads the arguments, trains once, prints one JSON line, or two for `typed`."""
    parser = recipe.arguments(__doc__, ["given", "nearest", "typed", "matched", "prompted"])
    parser.add_argument("--held", default="product,creative-work", help="the kinds that are held apart")
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()
    held = options.held.split(",")
    backbone, preprocessor = recipe.load_ours(recipe.weights_of(options), options.seed, max_length=512)
    import keras_bert_layers as kbl

    encoder = kbl.load_task(recipe.weights_of(options), "sentence_encoder")
    rows = read(options.data / "wnut17-train.conll", preprocessor)
    allowed = [row for row in rows if not set(row.spans.values()) & set(held)]
    train_rows = [row for number, row in enumerate(allowed) if row.spans or number % 3 == 0][: options.rows]
    test = read(options.data / "wnut17-test.conll", preprocessor)
    for layer in backbone.layers[: [layer.name for layer in backbone.layers].index(FIRST_TRAINED)]:
        layer.trainable = False
    model = Model(backbone, options.contender)
    names = np.asarray(preprocessor([name for kind in KINDS for name in NAMES[kind]])["token_ids"])
    asked = names[:: len(NAMES["person"])]
    frozen = model.names(asked).numpy()
    vectors, prefix = frozen, names[0, :0]
    if options.contender == "prompted":
        prefix, vectors = prefix_of(asked)
    if options.contender == "given":
        candidates = [[(1.0, *span, frozen[0]) for span in row.spans] for row in test]
    else:
        train(model, train_rows, [kind for kind in KINDS if kind not in held], names, options)
        candidates = predict(model, test, vectors, prefix)
    learnt = options.contender in ("typed", *ALONE)
    found = {options.contender: measure(test, candidates, held)} if learnt else {}
    if options.contender not in ALONE:
        found["nearest"] = measure(test, nearest(test, candidates, encoder, frozen), held)
    for contender, figures in found.items():
        recipe.tell(options, {"sentences": len(train_rows), "measured": contender, **figures})


if __name__ == "__main__":
    main()
