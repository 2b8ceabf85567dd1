"""ModernBERT, RoBERTa or another family beside sentence-transformers on the CPU: mixed lengths, long texts.

    python tests/benchmarks/bench_modernbert.py --data ../shared/data/corpus [--family gte] [--rounds 5] [--texts 64]

Both read the same directory: a sentence encoder of these sizes with random weights, and a tokenizer of 20,000 tokens
learnt of the texts, which are beginnings of articles of 4 to 512 tokens. In mixed lengths they take turns in one
process, after a check that their vectors are equal; sentence-transformers runs with sdpa, which its DeBERTa does not
have, at the best of three sizes of a batch. Beside them stand the matrix products of the dense layers alone, with the
same tokens: the bound of a program in float32. Texts of 256 to 8,192 tokens are measured in a process each, after a
short one; memory is the peak above what was held then. ALBERT, DeBERTa and RoBERTa read 512. Linux only.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _products import seconds_of_products
from bench_long_texts import MEBIBYTE, SHORT, _memory

BATCHES, LENGTHS, ALL = (1, 8, 32), (256, 512, 1024, 2048, 4096, 8192), 8192
NUM_TOKENS, TOLERANCE = 20_000, 2e-5
BASE = {"hidden_dim": 768, "num_layers": 12, "num_heads": 12, "intermediate_dim": 3072}


def read_texts(data: Path) -> list[str]:
    """The articles, each as one text."""
    from keras_bert_layers.data import read_documents

    return [" ".join(article) for article in read_documents(data / "wikipedia-2006-articles.txt.gz").documents]


def write_rotary(articles: list[str], directory: Path, family: str) -> None:
    """A directory of sentence-transformers, of the sizes of nomic-embed-text-v1.5 or gte-base-en-v1.5."""
    import keras
    from tokenizers import BertWordPieceTokenizer

    import keras_bert_layers as kbl
    from keras_bert_layers.layers import EncoderParts, GatedFeedForward, RotaryPositions, SelfAttention

    library = BertWordPieceTokenizer()
    library.train_from_iterator(articles, vocab_size=NUM_TOKENS, show_progress=False)
    vocabulary = library.get_vocab()
    tokenizer = kbl.BertTokenizer(sorted(vocabulary, key=vocabulary.__getitem__), reference="huggingface")
    keras.utils.set_random_seed(1)
    config = kbl.BertConfig(
        vocabulary_size=len(vocabulary),
        **BASE,
        max_sequence_length=ALL,
        activation="silu" if family == "nomic_bert" else "gelu_erf",
        dropout=0.0,
        attention_dropout=0.0,
    )
    if family == "nomic_bert":
        blocks: dict[str, Any] = {
            "attention": SelfAttention(12, use_bias=False),
            "feed_forward": GatedFeedForward(3072, activation="silu", use_bias=False),
        }
    else:
        blocks = {"feed_forward": GatedFeedForward(3072, gate_has_bias=False)}
    base = {"nomic_bert": 1000.0, "gte": 1_000_000.0}[family]
    parts = EncoderParts(positions=RotaryPositions(base=base, halves=True), **blocks)
    preprocessor = kbl.BertPreprocessor(tokenizer, ALL)
    encoder = kbl.BertSentenceEncoder(kbl.BertBackbone(config, parts=parts), "mean", preprocessor=preprocessor)
    kbl.save_huggingface(encoder, directory)


def write_albert(articles: list[str], directory: Path) -> None:
    """A directory of sentence-transformers, of the sizes of albert-base-v2."""
    import base64
    import io

    import keras
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    import keras_bert_layers as kbl
    from keras_bert_layers.layers import EncoderParts
    from keras_bert_layers.preprocessing import SentencePieceTokenizer

    model = io.BytesIO()
    special = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": "[CLS],[SEP],[MASK]"}
    sentences = iter([text[:4000] for text in articles])
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=sentences, model_writer=model, vocab_size=NUM_TOKENS, minloglevel=2, **special
    )
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    tokenizer = SentencePieceTokenizer(
        [piece.piece for piece in proto.pieces],
        [piece.score for piece in proto.pieces],
        character_map=base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode(),
        special_tokens=["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"],
        **{"start_token": "[CLS]", "separator_token": "[SEP]", "mask_token": "[MASK]"},
        normalizer="quotes_nfkd_lowercase",
        num_pair_separators=1,
    )
    keras.utils.set_random_seed(1)
    config = kbl.BertConfig(
        vocabulary_size=NUM_TOKENS,
        **BASE,
        embedding_dim=128,
        activation="gelu_tanh",
        dropout=0.0,
        attention_dropout=0.0,
    )
    backbone = kbl.BertBackbone(config, parts=EncoderParts(shares_block=True))
    encoder = kbl.BertSentenceEncoder(backbone, "mean", preprocessor=kbl.BertPreprocessor(tokenizer, 512))
    kbl.save_huggingface(encoder, directory)


def write_deberta(articles: list[str], directory: Path) -> None:
    """A directory of sentence-transformers, of the sizes of deberta-v3-base."""
    import keras
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    import keras_bert_layers as kbl
    from keras_bert_layers.layers import DisentangledSelfAttention, EncoderParts, RelativeVectors
    from keras_bert_layers.preprocessing import SentencePieceTokenizer

    library = Tokenizer(models.Unigram())
    library.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    settings = {"special_tokens": special, "unk_token": "[UNK]", "show_progress": False}
    library.train_from_iterator(articles, trainers.UnigramTrainer(vocab_size=NUM_TOKENS, **settings))
    pieces = json.loads(library.to_str())["model"]["vocab"]
    roles = dict(zip(("pad", "start", "separator", "unknown", "mask"), [*special, "[MASK]"], strict=True))
    tokenizer = SentencePieceTokenizer(
        [*(piece for piece, _ in pieces), "[MASK]"],
        [*(score for _, score in pieces), None],
        normalizer="nfc",
        num_pair_separators=1,
        **{f"{role}_token": token for role, token in roles.items()},
    )
    keras.utils.set_random_seed(1)
    config = kbl.BertConfig(
        vocabulary_size=tokenizer.vocabulary_size(),
        **BASE,
        num_segments=0,
        layer_norm_epsilon=1e-7,
        pooler_activation="gelu_erf",
    )
    attention = DisentangledSelfAttention(12, shares_projections=True, dropout=0.1, vector_dropout=0.1)
    parts = EncoderParts(attention=attention, positions=RelativeVectors(num_buckets=256, normalize=True))
    preprocessor = kbl.BertPreprocessor(tokenizer, 512)
    encoder = kbl.BertSentenceEncoder(kbl.BertBackbone(config, parts=parts), "mean", preprocessor=preprocessor)
    kbl.save_huggingface(encoder, directory)


def byte_pair_tokenizer(articles: list[str], roles: dict[str, str], num_separators: int, **settings: Any) -> Any:
    """A `BytePairTokenizer` learnt of the articles, whose first tokens are special: role -> token."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    from keras_bert_layers.preprocessing import BytePairTokenizer

    library = Tokenizer(models.BPE())
    library.normalizer = normalizers.NFC()
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    options = {"initial_alphabet": pre_tokenizers.ByteLevel.alphabet(), "show_progress": False}
    options |= {"vocab_size": NUM_TOKENS, "special_tokens": list(roles.values())}
    library.train_from_iterator(articles, trainers.BpeTrainer(**options))
    model = json.loads(library.to_str())["model"]
    return BytePairTokenizer(
        sorted(model["vocab"], key=model["vocab"].get),
        model["merges"],
        trim_offsets=False,
        num_pair_separators=num_separators,
        **{f"{role}_token": token for role, token in roles.items()},
        **settings,
    )


def write_roberta(articles: list[str], directory: Path) -> None:
    """A directory of sentence-transformers, of the sizes of roberta-base."""
    import keras

    import keras_bert_layers as kbl

    roles = {"start": "<s>", "pad": "<pad>", "separator": "</s>", "unknown": "<unk>", "mask": "<mask>"}
    tokenizer = byte_pair_tokenizer(articles, roles, 2)
    keras.utils.set_random_seed(1)
    config = kbl.BertConfig(
        vocabulary_size=NUM_TOKENS,
        **BASE,
        num_segments=1,
        position_offset=2,
        activation="gelu_erf",
        layer_norm_epsilon=1e-5,
    )
    preprocessor = kbl.BertPreprocessor(tokenizer, 512)
    encoder = kbl.BertSentenceEncoder(kbl.BertBackbone(config), "mean", preprocessor=preprocessor)
    kbl.save_huggingface(encoder, directory)


def write_encoder(articles: list[str], directory: Path) -> None:
    """A directory of sentence-transformers, of the sizes of ModernBERT-base."""
    import keras

    import keras_bert_layers as kbl
    from keras_bert_layers.layers import EncoderParts, GatedFeedForward, LocalAttention, RotaryPositions

    roles = {"unknown": "[UNK]", "start": "[CLS]", "separator": "[SEP]", "pad": "[PAD]", "mask": "[MASK]"}
    tokenizer = byte_pair_tokenizer(articles, roles, 1, normalizer="nfc")
    keras.utils.set_random_seed(1)
    config = kbl.BertConfig(
        vocabulary_size=NUM_TOKENS,
        hidden_dim=768,
        num_layers=22,
        num_heads=12,
        intermediate_dim=1152,
        max_sequence_length=ALL,
        num_segments=0,
        activation="gelu_erf",
        pooler_activation="gelu_erf",
        layer_norm_epsilon=1e-5,
    )
    parts = EncoderParts(
        positions=RotaryPositions(base=160_000.0, halves=True),
        feed_forward=GatedFeedForward(1152, activation="gelu_erf", use_bias=False),
        normalize_first=True,
        normalizes_first_attention=False,
        use_bias=False,
        local_attention=LocalAttention(128, positions=RotaryPositions(base=10_000.0, halves=True)),
        normalizes_heads=True,
    )
    preprocessor = kbl.BertPreprocessor(tokenizer, ALL)
    encoder = kbl.BertSentenceEncoder(kbl.BertBackbone(config, parts=parts), "mean", preprocessor=preprocessor)
    kbl.save_huggingface(encoder, directory)


def contender(name: str, directory: str) -> Any:
    """A function from texts to vectors."""
    if name == "ours":
        import keras_bert_layers as kbl

        encoder = kbl.load_task(directory)
        return lambda texts, _: encoder.predict(texts, verbose=0)
    from sentence_transformers import SentenceTransformer

    is_deberta = json.loads(Path(directory, "config.json").read_text("utf-8"))["model_type"] == "deberta-v2"
    options = {"attn_implementation": "eager" if is_deberta else "sdpa"}
    model = SentenceTransformer(directory, device="cpu", model_kwargs=options)
    return lambda texts, size: model.encode(texts, batch_size=size, show_progress_bar=False)


def mixed(directory: str, texts: list[str], rounds: int) -> None:
    """Prints the texts per second of both, and their ratio."""
    import numpy as np

    import keras_bert_layers as kbl

    ours, theirs = (contender(name, directory) for name in ("ours", "theirs"))
    difference = np.abs(ours(texts, None) - theirs(texts, 8)).max()
    if difference > TOLERANCE:
        raise SystemExit(f"the vectors differ by {difference}")

    def seconds(encode: Any, size: int | None) -> float:
        start = time.process_time()
        encode(texts, size)
        return time.process_time() - start

    ours(texts, None)
    tried = {size: seconds(theirs, size) for size in BATCHES}
    print(f"theirs by size of batch, processor seconds: {tried}")
    best = min(tried, key=tried.__getitem__)
    pairs = [(seconds(ours, None), seconds(theirs, best)) for _ in range(rounds)]
    rates = [len(texts) / statistics.median(part) for part in zip(*pairs, strict=True)]
    ratio = statistics.median(their / our for our, their in pairs)
    words = f"ours {rates[0]:.2f} texts/s, theirs {rates[1]:.2f} in batches of {best}: {ratio:.2f} x"
    print(f"mixed lengths, by processor time: {words}")
    num_tokens = sum(len(row) + 2 for row in kbl.load_tokenizer(directory).tokenize(texts).to_list())
    backbone = kbl.load_backbone(directory)
    alone = statistics.median(seconds_of_products(backbone, num_tokens) for _ in range(rounds))
    print(f"{num_tokens} tokens; the products of the dense layers alone: {len(texts) / alone:.2f} texts/s")


def ask(name: str, directory: str, path: str) -> None:
    """Measures one long text in this process."""
    encode = contender(name, directory)
    encode([SHORT], 1)
    text = Path(path).read_text(encoding="utf-8")
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    held, start = _memory("VmRSS"), time.perf_counter()
    encode([text], 1)
    print(json.dumps({"seconds": time.perf_counter() - start, "bytes": _memory("VmHWM") - held}))


def main() -> None:
    """Reads the arguments, makes the encoder, and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of wikipedia-2006-articles.txt.gz")
    of_512 = {"albert": write_albert, "deberta": write_deberta, "roberta": write_roberta}
    families = ("modernbert", "nomic_bert", "gte", *of_512)
    parser.add_argument("--family", choices=families, default="modernbert")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--texts", type=int, default=64)
    parser.add_argument("--ask", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ask:
        ask(*options.ask)
        return
    articles, draw = read_texts(options.data), random.Random(1)
    with tempfile.TemporaryDirectory() as directory:
        if options.family == "modernbert":
            write_encoder(articles, Path(directory, "encoder"))
        elif options.family in of_512:
            of_512[options.family](articles, Path(directory, "encoder"))
        else:
            write_rotary(articles, Path(directory, "encoder"), options.family)
        import keras_bert_layers as kbl

        tokenizer = kbl.load_tokenizer(Path(directory, "encoder"))
        lengths = [round(4 * 2 ** draw.uniform(0, 7)) for _ in range(options.texts)]
        ids = tokenizer.tokenize(articles[: options.texts]).to_list()
        texts = [
            text.decode()
            for text in tokenizer.detokenize([row[:n] for row, n in zip(ids, lengths, strict=True)]).numpy()
        ]
        mixed(str(Path(directory, "encoder")), texts, options.rounds)
        whole = tokenizer.tokenize(" ".join(articles)[: 12 * ALL]).numpy().tolist()
        print("| tokens | ours, s | MiB | theirs, s | MiB |\n|--:|--:|--:|--:|--:|")
        for length in [each for each in LENGTHS if options.family not in of_512 or each <= 512]:
            path = Path(directory, "text.txt")
            path.write_bytes(tokenizer.detokenize(whole[: length - 8]).numpy())
            cells = []
            for name in ("ours", "theirs"):
                command = [sys.executable, __file__, "--ask", name, str(Path(directory, "encoder")), str(path)]
                found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
                cells += [f"{found['seconds']:.1f}", f"{found['bytes'] / MEBIBYTE:.0f}"]
            print(f"| {length} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
