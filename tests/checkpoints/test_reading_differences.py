"""`read_differently`: crafted directories with one thing that another program reads differently, or with nothing."""

import json
from typing import Any

import pytest

from keras_bert_layers.checkpoints import CheckpointError, load_tokenizer, read_differently

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [*SPECIAL, "hello", "world", "Hello", "##lo"]
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁hello", "▁world", "h", "e", "<mask>"]
NAMES = {"unk_token": "<unk>", "pad_token": "<pad>", "cls_token": "<s>", "sep_token": "</s>", "mask_token": "<mask>"}
FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
BERT = {
    "model_type": "bert",
    "vocab_size": 40,
    "hidden_size": 15,
    "num_hidden_layers": 1,
    "num_attention_heads": 3,
    "intermediate_size": 17,
    "max_position_embeddings": 20,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
    "hidden_dropout_prob": 0.1,
    "initializer_range": 0.02,
    "architectures": ["BertModel"],
}
ROBERTA = {**BERT, "model_type": "roberta", "pad_token_id": 1, "type_vocab_size": 1}
XLM_R = {**ROBERTA, "model_type": "xlm-roberta"}
DEBERTA = {**BERT, "model_type": "deberta-v2", "relative_attention": True}
LENGTH = {"model_max_length": 20}
PLAIN = {**LENGTH, "tokenizer_class": "BertTokenizer", "do_lower_case": True}


def added(tokens, first=0):
    return [{"id": index, "content": token, **FLAGS} for index, token in enumerate(tokens, first)]


def decoder(tokens):
    return {str(entry.pop("id")): entry for entry in added(tokens)}


def word_piece(*, lowercase=True, strip_accents=None, split_chinese=True, more=(), **parts):
    """The content of a `tokenizer.json` as `BertTokenizer` saves it."""
    normalizer = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": split_chinese,
        "strip_accents": strip_accents,
        "lowercase": lowercase,
    }
    template = [["[CLS]", 0], ["A", 0], ["[SEP]", 0], ["B", 1], ["[SEP]", 1]]
    items = [
        {("Sequence" if name in "AB" else "SpecialToken"): {"id": name, "type_id": segment}}
        for name, segment in template
    ]
    ends = {token: {"id": token, "ids": [WORDS.index(token)], "tokens": [token]} for token in ("[CLS]", "[SEP]")}
    values = {
        "added_tokens": [*added(SPECIAL), *more],
        "normalizer": normalizer,
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": items[:3],
            "pair": items,
            "special_tokens": ends,
        },
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {word: index for index, word in enumerate(WORDS)},
        },
    }
    return {**values, **parts}


UNIGRAM = {
    "added_tokens": [],
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    "model": {"type": "Unigram", "unk_id": 3, "vocab": [[piece, -1.0] for piece in PIECES]},
}
CHARACTER_MAP = {"type": "Sequence", "normalizers": [{"type": "Strip"}, {"type": "Precompiled"}]}
BYTE_LEVEL = {"added_tokens": [], "model": {"type": "BPE", "vocab": {"h": 0}, "merges": []}}


def sentence_encoder(*kinds, pooling=None, folder="1_Pooling", length=None, lower=False, prompts=None, default=None):
    """The files that sentence-transformers adds."""
    folders = {"Transformer": "", "Pooling": folder, "Dense": "2_Dense", "Normalize": "3_Normalize"}
    kinds = ("Transformer", "Pooling", *kinds)
    package = "sentence_transformers.models"
    return {
        "modules.json": [{"name": kind, "type": f"{package}.{kind}", "path": folders[kind]} for kind in kinds],
        f"{folder}/config.json": pooling or {"pooling_mode_mean_tokens": True},
        "sentence_bert_config.json": {"max_seq_length": length, "do_lower_case": lower},
        "config_sentence_transformers.json": {"prompts": prompts or {}, "default_prompt_name": default},
    }


def files(config=BERT, settings=PLAIN, tokenizer=None, vocabulary=None, **more):
    found: dict[str, Any] = {"config.json": config, "tokenizer_config.json": settings}
    found["tokenizer.json"] = word_piece() if tokenizer is None else tokenizer
    return {**found, **({"vocab.txt": vocabulary} if vocabulary else {}), **more}


def encoder(config=BERT, settings=PLAIN, *kinds, **options):
    return {**files(config, settings), **sentence_encoder(*kinds, **options)}


TOKENIZERS, SERVER, HUB, TRANSFORMERS = "tokenizers", "text-embeddings-inference", "KerasHub", "transformers 5"
NEW = added(["new"], len(WORDS))
ENDS = {"cls_token": "[CLS]", "sep_token": "[SEP]"}
PAIRS = {"type": "BertProcessing", "cls": ["[CLS]", 2], "sep": ["[SEP]", 3]}
# Files, and the part, the program and the text of each entry.
CASES: dict[str, tuple[dict[str, Any], list[tuple[str, str, str]]]] = {
    "plain": (files(), []),
    "plain_with_vocabulary": (files(vocabulary=WORDS), []),
    "plain_cased": (files(settings={**PLAIN, "do_lower_case": False}, tokenizer=word_piece(lowercase=False)), []),
    "plain_encoder": (encoder(BERT, PLAIN, "Normalize", length=20), []),
    "plain_xlm_roberta": (files(XLM_R, {"model_max_length": 18}, UNIGRAM), []),
    "plain_roberta": (files(ROBERTA, {"model_max_length": 18}, BYTE_LEVEL), []),
    "deberta_with_a_character_map": (
        files(DEBERTA, {"tokenizer_class": "DebertaV2TokenizerFast"}, {**UNIGRAM, "normalizer": CHARACTER_MAP}),
        [("tokenizer", TOKENIZERS, "ﬁlm")],
    ),
    "plain_deberta": (files(DEBERTA, {}, {**UNIGRAM, "normalizer": {"type": "NFC"}}), []),
    "plain_slow": ({"config.json": BERT, "vocab.txt": WORDS}, []),
    "unigram_as_roberta": (
        files(XLM_R, {"tokenizer_class": "RobertaTokenizer"}, UNIGRAM),
        [("tokenizer", TRANSFORMERS, "hello")],
    ),
    "unigram_as_bert": (files(BERT, NAMES, UNIGRAM), [("tokenizer", TRANSFORMERS, "hello")]),
    "unigram_by_type": (files(ROBERTA, {}, UNIGRAM), [("tokenizer", TRANSFORMERS, "hello")]),
    "unigram_without_unknown": (files(BERT, {}, UNIGRAM), [("tokenizer", TRANSFORMERS, "hello")]),
    "other_vocabulary": (
        files(vocabulary=[*SPECIAL, "world", "hello", *WORDS[7:]]),
        [("tokenizer", HUB, "hello")],
    ),
    "cased_here": (files(settings={**PLAIN, "do_lower_case": False}), [("casing", TOKENIZERS, "Hello")]),
    "cased_there": (
        files(tokenizer=word_piece(lowercase=False, strip_accents=True)),
        [("casing", TOKENIZERS, "Hello")],
    ),
    "no_casing_stated": (
        files(settings=LENGTH, tokenizer=word_piece(lowercase=False, strip_accents=True)),
        [("casing", TOKENIZERS, "Hello")],
    ),
    "accents": (files(settings={**PLAIN, "strip_accents": False}), [("tokenizer", TOKENIZERS, "café")]),
    "other_id": (
        files(settings={**PLAIN, "added_tokens_decoder": {"30": NEW[0]}}, tokenizer=word_piece(more=NEW)),
        [("tokenizer", "slow tokenizers", "new")],
    ),
    "unlisted_token": (
        files(BERT, {**PLAIN, "added_tokens_decoder": decoder(SPECIAL)}, word_piece(more=NEW), WORDS),
        [("tokenizer", TOKENIZERS, "new")],
    ),
    "length_beyond_positions": (
        files(settings={**PLAIN, "model_max_length": 64}),
        [("length", TRANSFORMERS, "a text of more than 20 tokens")],
    ),
    "shorter_encoder": (
        encoder(length=10),
        [("length", TRANSFORMERS, "a text of more than 10 tokens")],
    ),
    "lower_cased_encoder": (
        {
            **encoder(BERT, {**PLAIN, "do_lower_case": False}, length=20, lower=True),
            "tokenizer.json": word_piece(lowercase=False),
        },
        [("casing", TRANSFORMERS, "Hello")],
    ),
    "default_prompt": (
        encoder(prompts={"query": "query: "}, default="query"),
        [("prompts", TRANSFORMERS, "query: Hello")],
    ),
    "no_padding_id": (
        files({key: value for key, value in XLM_R.items() if key != "pad_token_id"}, {"model_max_length": 18}, UNIGRAM),
        [("config", SERVER, "Hello")],
    ),
    "former_jina": (
        files(
            {**XLM_R, "position_embedding_type": "rotary", "rotary_emb_base": 20000.0},
            {"model_max_length": 18},
            UNIGRAM,
        ),
        [("positions", TRANSFORMERS, "Hello")],
    ),
    "half": (files({**BERT, "torch_dtype": "float16"}), [("dtype", TRANSFORMERS, "Hello")]),
    "two_modes": (
        encoder(pooling={"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}),
        [("pooling", SERVER, "Hello")],
    ),
    "plain_generic": (
        files({**BERT, "type_vocab_size": 1}, {**LENGTH, "tokenizer_class": "PreTrainedTokenizerFast"}),
        [],
    ),
    "plain_listed": (
        files(settings={**PLAIN, "added_tokens_decoder": decoder([*WORDS, "new"])}, tokenizer=word_piece(more=NEW)),
        [],
    ),
    "plain_added_in_json": (files(tokenizer=word_piece(more=NEW)), []),
    "vocabulary_without_added": (
        files(tokenizer=word_piece(more=NEW), vocabulary=WORDS),
        [("tokenizer", "KerasHub", "new")],
    ),
    "plain_no_length": (files(settings={"model_max_length": int(1e30), "do_lower_case": True}), []),
    "plain_cls": (encoder(pooling={"pooling_mode_cls_token": True}), []),
    "plain_prompts": (encoder(prompts={"query": "query: ", "document": ""}), []),
    "plain_empty_prompt": (encoder(prompts={"query": ""}, default="query"), []),
    "plain_float32": (files({**BERT, "dtype": "float32", "hidden_act": "gelu_new"}), []),
    "plain_unigram_of_bert": (files(BERT, {"tokenizer_class": "XLMRobertaTokenizer"}, UNIGRAM), []),
    "plain_unigram_generic": (files(BERT, {"tokenizer_class": "PreTrainedTokenizerFast"}, UNIGRAM), []),
    "plain_camembert": (files({**XLM_R, "model_type": "camembert"}, {}, UNIGRAM), []),
    "plain_accents": (
        files(settings={**PLAIN, "strip_accents": True}, tokenizer=word_piece(strip_accents=True)),
        [],
    ),
    "unigram_refused": (
        files(BERT, {**NAMES, "tokenizer_class": "BertTokenizerFast"}, UNIGRAM),
        [("tokenizer", TRANSFORMERS, "hello")],
    ),
    "chinese": (
        files(settings={**PLAIN, "tokenize_chinese_chars": False}),
        [("tokenizer", TOKENIZERS, "中国")],
    ),
    "other_normalizer": (
        files(tokenizer=word_piece(normalizer={"type": "Lowercase"})),
        [("tokenizer", TOKENIZERS, "Hello")],
    ),
    "longer_vocabulary": (files(vocabulary=[*WORDS, "more"]), [("tokenizer", HUB, "more")]),
    "added_tokens_json": (
        {**files(tokenizer=word_piece(more=NEW)), "added_tokens.json": {"new": 30}},
        [("tokenizer", "slow tokenizers", "new")],
    ),
    "segments": (
        files(settings={**LENGTH, "tokenizer_class": "PreTrainedTokenizerFast"}),
        [("tokenizer", TRANSFORMERS, "Hello [SEP] world")],
    ),
    "segments_of_albert": (
        files({**BERT, "model_type": "albert", "embedding_size": 5}, LENGTH, UNIGRAM),
        [("tokenizer", TRANSFORMERS, "Hello [SEP] world")],
    ),
    "stated_segments_of_albert": (
        files(
            {**BERT, "model_type": "albert", "embedding_size": 5},
            {**LENGTH, "tokenizer_class": "AlbertTokenizer", "model_input_names": ["input_ids", "token_type_ids"]},
            UNIGRAM,
        ),
        [],
    ),
    "longer_encoder": (
        encoder(length=64),
        [("length", "sentence-transformers", "a text of more than 20 tokens")],
    ),
    "roberta_without_length": (
        {**files(XLM_R, {}, UNIGRAM), **sentence_encoder()},
        [("length", "sentence-transformers", "a text of more than 18 tokens")],
    ),
    "other_pooling_folder": (encoder(folder="pool"), [("pooling", SERVER, "Hello")]),
    "pooling_of_release_6": (encoder(pooling={"pooling_mode": "mean"}), [("pooling", SERVER, "Hello")]),
    "pooling_by_largest": (encoder(pooling={"pooling_mode_max_tokens": True}), [("pooling", SERVER, "Hello")]),
    "last_token": (
        encoder(pooling={"pooling_mode": "lasttoken"}),
        [("pooling", SERVER, "Hello"), ("pooling", HUB, "Hello")],
    ),
    "dense": ({**encoder(BERT, PLAIN, "Dense")}, [("pooling", HUB, "Hello")]),
    "relu": (files({**BERT, "hidden_act": "relu"}), [("activation", HUB, "Hello")]),
    "plain_ends": (files(settings={**PLAIN, **ENDS}, tokenizer=word_piece(post_processor=PAIRS)), []),
    "other_start": (
        files(settings={**PLAIN, **ENDS, "cls_token": "[MASK]"}, tokenizer=word_piece(post_processor=PAIRS)),
        [("tokenizer", TOKENIZERS, "Hello")],
    ),
    "regression": (
        files(
            {
                **{**BERT, "architectures": ["BertForSequenceClassification"], "problem_type": "regression"},
                **{"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}},
            }
        ),
        [("scores", "sentence-transformers", "Hello")],
    ),
}


def written(folder, contents):
    for name, content in contents.items():
        (folder / name).parent.mkdir(exist_ok=True)
        lines = "".join(f"{token}\n" for token in content) if name == "vocab.txt" else json.dumps(content)
        (folder / name).write_text(lines, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", CASES)
def test_crafted_directories(tmp_path, name):
    contents, expected = CASES[name]
    entries = read_differently(written(tmp_path, contents))
    assert [(entry["part"], entry["text"]) for entry in entries] == [(part, text) for part, _, text in expected]
    for entry, (_, program, _) in zip(entries, expected, strict=True):
        assert program in entry["program"]
        assert entry["difference"].endswith(".")


def test_fifty_cases():
    assert len(CASES) >= 50


def test_other_layouts_have_none(tmp_path):
    (tmp_path / "bert_config.json").write_text("{}")
    (tmp_path / "bert_model.ckpt.index").touch()
    assert read_differently(tmp_path) == []


@pytest.mark.parametrize(
    ("changed", "content"),
    [
        ("tokenizer.json", {"added_tokens": [1], "model": {"type": "Unigram", "vocab": [1]}}),
        ("tokenizer.json", {"added_tokens": {"a": 1}, "model": []}),
        ("tokenizer_config.json", {"added_tokens_decoder": {"x": "new"}}),
        ("1_Pooling/config.json", {"pooling_mode": 5}),
    ],
)
def test_damaged_files(tmp_path, changed, content):
    with pytest.raises(CheckpointError, match="must be"):
        read_differently(written(tmp_path, {**encoder(), changed: content}))


def test_unigram_under_the_class_of_roberta_is_read(tmp_path):
    contents = CASES["unigram_as_roberta"][0]
    template = {"type": "RobertaProcessing", "cls": ["<s>", 0], "sep": ["</s>", 2]}
    written(tmp_path, {**contents, "tokenizer.json": {**UNIGRAM, "post_processor": template}})
    with pytest.warns(UserWarning, match='write "tokenizer_class": "XLMRobertaTokenizer"'):
        assert load_tokenizer(tmp_path).tokenize(["hello world"]).to_list() == [[4, 5]]
    written(tmp_path, {"config.json": BERT})
    with pytest.raises(CheckpointError, match='If .* these pieces, write "tokenizer_class": "XLMRobertaTokenizer"'):
        load_tokenizer(tmp_path)


@pytest.mark.peers
@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("unigram_as_roberta", ["<s>", "h", "e", "</s>"]),
        ("unigram_as_bert", ["<s>", "<unk>", "</s>"]),
        ("unigram_refused", ["<s>", "<unk>", "</s>"]),
        ("cased_here", ["[CLS]", "Hello", "[SEP]"]),
        ("no_casing_stated", ["[CLS]", "hello", "[SEP]"]),
        ("lower_cased_encoder", ["[CLS]", "Hello", "[SEP]"]),
        ("other_vocabulary", ["[CLS]", "hello", "[SEP]"]),
        ("unlisted_token", ["[CLS]", "[UNK]", "[SEP]"]),
        ("other_start", ["[MASK]", "hello", "[SEP]"]),
    ],
)
def test_tokens_of_transformers(tmp_path, name, tokens):
    import transformers

    contents, ((_, _, text),) = CASES[name]
    tokenizer = transformers.AutoTokenizer.from_pretrained(written(tmp_path, contents))
    found = tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"])
    assert [token for token, before in zip(found, [None, *found], strict=False) if token != before] == tokens


@pytest.mark.peers
def test_segments_and_dtypes_of_transformers(tmp_path):
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(written(tmp_path, CASES["segments"][0]))
    assert "token_type_ids" not in tokenizer("hello", "world")
    model = transformers.BertModel(transformers.BertConfig(**BERT)).half()
    model.save_pretrained(tmp_path)
    assert transformers.AutoModel.from_pretrained(tmp_path).dtype == torch.float16
    assert [entry["part"] for entry in read_differently(tmp_path)] == ["tokenizer", "dtype"]


@pytest.mark.peers
@pytest.mark.parametrize(("name", "length"), [("shorter_encoder", 10), ("longer_encoder", 64), ("default_prompt", 20)])
def test_settings_of_sentence_transformers(tmp_path, name, length):
    import transformers

    sentence_transformers = pytest.importorskip("sentence_transformers")
    folder = written(tmp_path, CASES[name][0])
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"embedding_dimension": 15, "pooling_mode": "mean"}))
    transformers.BertModel(transformers.BertConfig(**BERT)).save_pretrained(folder)
    model = sentence_transformers.SentenceTransformer(str(folder))
    assert (model.max_seq_length, model.default_prompt_name) == (length, "query" if name == "default_prompt" else None)
    assert transformers.AutoTokenizer.from_pretrained(folder).model_max_length == 20
