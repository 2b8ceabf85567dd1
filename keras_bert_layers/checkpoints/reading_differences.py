"""`read_differently`: what other programs read differently in the same HuggingFace directory, by rules."""

import os
from collections.abc import Callable, Iterator

from keras_bert_layers.checkpoints.checkpoint import Checkpoint
from keras_bert_layers.checkpoints.checkpoint_error import damaged
from keras_bert_layers.checkpoints.compared_files import ComparedFiles
from keras_bert_layers.checkpoints.files.json_file import optional_json, read_json
from keras_bert_layers.checkpoints.files.vocabulary import read_vocabulary
from keras_bert_layers.checkpoints.huggingface.adapter import ADAPTER_CONFIG
from keras_bert_layers.checkpoints.huggingface.directory import HuggingFaceDirectory
from keras_bert_layers.checkpoints.huggingface.families.table import default_tokenizer
from keras_bert_layers.checkpoints.huggingface.tokenizer.byte_level import ROBERTA
from keras_bert_layers.checkpoints.huggingface.tokenizer.json_file import (
    TokenizerClass,
    only_part,
    template_names,
)
from keras_bert_layers.checkpoints.huggingface.tokenizer.sentence_piece import class_by_model
from keras_bert_layers.checkpoints.huggingface.tokenizer.special_tokens import ADDED, ROLES, TOKENS_MAP
from keras_bert_layers.checkpoints.huggingface.tokenizer.stated_tokens import ALBERT, DEBERTA, content_of, named_class
from keras_bert_layers.checkpoints.huggingface.tokenizer.word_piece import stated_options
from keras_bert_layers.checkpoints.open_checkpoint import open_checkpoint
from keras_bert_layers.checkpoints.sentence_transformers import modules
from keras_bert_layers.checkpoints.sentence_transformers.cross_encoder import stated_activation
from keras_bert_layers.preprocessing.tokens.markers import MARKER

TRANSFORMERS = "transformers 5.24"
SENTENCE_TRANSFORMERS = "sentence-transformers 6.2"
KERAS_HUB = "KerasHub 0.32"
SERVER = "text-embeddings-inference 1"
LIBRARY = "tokenizers 0.23"
TOKENIZERS = f"{LIBRARY}, {SERVER}"
SLOW = "slow tokenizers of transformers 4"

# The option -> a text that shows it, and what is done where it is set.
_OPTIONS = {
    "lowercase": ("Hello", "lower-case texts"),
    "strip_accents": ("café", "strip accents"),
    "split_chinese": ("中国", "split Chinese characters"),
}
_HALF = ("float16", "bfloat16", "half")
# What the names of classes of tokenizers begin with that read no Unigram model.
_OTHER_KINDS = ("Roberta", "Bart", "Longformer", "LED", "Bert", "DistilBert", "Electra", "MPNet", "MobileBert")
# Their positions begin after the id of the padding token.
_OFFSET_TYPES = ("roberta", "xlm-roberta", "camembert")
# The only names in `modules.json` that text-embeddings-inference knows.
_SERVER_MODULES = {f"sentence_transformers.models.{kind}" for kind in ("Transformer", "Pooling", "Dense", "Normalize")}
# What text-embeddings-inference has no default for, and transformers has.
_SERVER_KEYS = ("layer_norm_eps", "pad_token_id", "hidden_dropout_prob", "initializer_range", "type_vocab_size")
# The types with a `vocab.txt` that KerasHub reads.
_HUB_TYPES = ("bert", "distilbert")
# What transformers writes where there is no length is larger.
_LONGEST = 1_000_000


def read_differently(source: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Lists what other programs read differently in the same HuggingFace directory.

    Rules compare the files; no other program runs, and no weight is read. The rules are those of the releases that the
    entries name. What is so for every directory has no entry, such as the GELU of text-embeddings-inference.

    Args:
        source: a directory, `hf://…`, or a preset's name. Other layouts than HuggingFace's have no entries.

    Returns:
        One dictionary of strings for each difference: the `part` of the files, the `program`, a `text` that shows it,
        and the `difference` in one sentence. Empty if there is none.

    Raises:
        CheckpointError: there is no such directory, or a file is damaged.

    Examples:
        >>> import json, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "config.json").write_text(json.dumps({"model_type": "mpnet", "dtype": "float16"}))
        >>> [(entry["part"], entry["program"]) for entry in read_differently(folder)]
        [('dtype', 'transformers 5.24, sentence-transformers 6.2')]
    """
    return differences_of(open_checkpoint(source, owner="read_differently"))


def differences_of(checkpoint: Checkpoint) -> list[dict[str, str]]:
    """The entries of `read_differently` for an open checkpoint."""
    if not isinstance(checkpoint, HuggingFaceDirectory):
        return []
    names = ("part", "program", "text", "difference")
    wrong = (TypeError, AttributeError, ValueError, ArithmeticError, LookupError)
    with damaged(f"{checkpoint}: the files must be those of a tokenizer and an encoder", wrong):
        files = ComparedFiles(checkpoint)
        return [dict(zip(names, row, strict=True)) for rule in _RULES for row in rule(files)]


_Rows = Iterator[tuple[str, str, str, str]]


def _classes(files: ComparedFiles) -> _Rows:
    """A Unigram file under a class of another kind of tokenizer."""
    name = files.named_class
    if files.kind != "Unigram" or not name.startswith(_OTHER_KINDS):
        return
    pieces = [piece for piece, _ in files.vocabulary]
    text = next(
        (piece[1:] for piece in pieces if piece[:1] == MARKER and piece[1:].isalpha() and len(piece) > 2), "hello"
    )
    stated = {**files.tokenizer_config, **optional_json(files.folder / TOKENS_MAP)}
    if name in ROBERTA:
        theirs = f"reads {text!r} as single letters, and leaves out those that are no pieces"
    elif content_of(stated.get("unk_token", "[UNK]")) in pieces:
        theirs = f"reads {text!r} as the unknown token"
    else:
        theirs = "cannot read the file, which has no [UNK]"
    is_named = named_class(files.folder, files.tokenizer_config, None)[1] is not None
    is_refused = is_named and class_by_model(name, default_tokenizer(files.config)) == name
    ours = "refuses this class" if is_refused else "reads the pieces of tokenizer.json"
    yield "tokenizer", TRANSFORMERS, text, f"{name} {theirs}; this package {ours}."


def _characters(files: ComparedFiles) -> _Rows:
    """A character map in a file of DeBERTa's, whose class does not read it."""
    normalizer = files.stored.get("normalizer") or {}
    kinds = [part.get("type") for part in (normalizer, *normalizer.get("normalizers", ()))]
    if files.kind == "Unigram" and files.named_class in DEBERTA and "Precompiled" in kinds:
        difference = "They replace characters by the map in tokenizer.json; this package, as transformers 5, does not."
        yield "tokenizer", TOKENIZERS, "ﬁlm", difference


def _normalizers(files: ComparedFiles) -> _Rows:
    """Settings of BERT's class beside those of `tokenizer.json`."""
    stored = files.word_pieces
    if stored is None or files.token_class is not TokenizerClass.BERT:
        return
    if stored.options is None:
        yield (
            "tokenizer",
            TOKENIZERS,
            "Hello",
            f"They read all of tokenizer.json; this package, as transformers, its tokens as {files.named_class}.",
        )
        return
    ours, theirs = stated_options(files.tokenizer_config), dict(stored.options)
    if theirs["strip_accents"] is None:
        theirs["strip_accents"] = theirs["lowercase"]
    if theirs["lowercase"] != ours["lowercase"]:  # what follows is no second entry
        theirs["strip_accents"] = ours["strip_accents"]
    for option, (text, action) in _OPTIONS.items():
        if bool(ours[option]) != bool(theirs[option]):
            they, we = ["", "does not"] if theirs[option] else ["do not ", "does"]
            yield (
                "casing" if option == "lowercase" else "tokenizer",
                TOKENIZERS,
                text,
                f"They {they}{action}, by tokenizer.json; this package {we}, by tokenizer_config.json or its defaults.",
            )


def _vocabularies(files: ComparedFiles) -> _Rows:
    """A `vocab.txt` with other ids than `tokenizer.json`."""
    path = files.folder / "vocab.txt"
    if files.kind != "WordPiece" or not path.is_file():
        return
    listed = {token: index for index, token in enumerate(read_vocabulary(path, required=()))}
    known = {**files.added, **files.vocabulary}
    names = dict.fromkeys([*files.vocabulary, *(token for token in listed if token)])
    for token in names:
        here, there = known.get(token), listed.get(token)
        if here != there and not (there is None and token in files.added):
            text = token.removeprefix("##")
            they, we = ["no id" if index is None else f"id {index}" for index in (there, here)]
            difference = f"{token!r} has {they} in vocab.txt, which they read, and {we} in tokenizer.json, as here."
            yield "tokenizer", f"{KERAS_HUB}, {SLOW}", text, difference
            return
    stated = files.tokenizer_config.get("added_tokens_decoder")  # where it is, tokens that it lacks are none here
    taken = {content_of(entry) for entry in stated.values()} if isinstance(stated, dict) else {*files.added}
    unknown = [token for token in files.added if token in taken and token not in listed]
    if unknown and files.model_type in _HUB_TYPES:
        difference = f"It does not know the added token {unknown[0]!r}, which vocab.txt lacks; this package does."
        yield "tokenizer", KERAS_HUB, unknown[0], difference


def _added_tokens(files: ComparedFiles) -> _Rows:
    """Added tokens that files state with other ids, or that one file lacks."""
    decoder = files.tokenizer_config.get("added_tokens_decoder")
    entries = decoder.items() if isinstance(decoder, dict) else ()
    stated = {content_of(entry): int(index) for index, entry in entries}
    if decoder is None:
        stated = optional_json(files.folder / ADDED)
    for content, index in stated.items():
        if files.added.get(content, index) != index:
            difference = (
                f"{content!r} has id {index} in the other files, and {files.added[content]} in tokenizer.json, as here."
            )
            yield "tokenizer", SLOW, content, difference
        if files.kind in ("WordPiece", "BPE") and content not in files.added and content not in files.vocabulary:
            difference = f"They do not know the added token {content!r}, which tokenizer.json lacks; this package does."
            yield "tokenizer", TOKENIZERS, content, difference
    if decoder is not None and files.word_pieces is not None and files.token_class is TokenizerClass.BERT:
        named = {content_of(files.tokenizer_config.get(role, token)) for role, token in ROLES.items()}
        for content in files.added:
            if content not in stated and content not in named:
                reason = "which tokenizer_config.json does not list"
                difference = f"They find the added token {content!r}, {reason}; this package and transformers do not."
                yield "tokenizer", TOKENIZERS, f"{content}", difference


def _ends(files: ComparedFiles) -> _Rows:
    """Tokens around a text, by the template of `tokenizer.json` and by their roles in the other files."""
    if files.word_pieces is None or files.token_class is TokenizerClass.GENERIC:
        return
    values = files.tokenizer_config
    if "added_tokens_decoder" not in values:  # with it, transformers does not read the map
        values = {**values, **optional_json(files.folder / TOKENS_MAP)}
    ours = [content_of(values.get(role)) for role in ("cls_token", "sep_token")]
    template = only_part(files.stored.get("post_processor"), "processors") or {}
    pairs = [template[end][0] for end in ("cls", "sep") if end in template]
    theirs = pairs or [name for name in template_names(template.get("single") or []) if name != "A"]
    if None not in ours and theirs != ours:
        difference = f"They put {theirs} around a text, by tokenizer.json; this package, as transformers, {ours}."
        yield "tokenizer", TOKENIZERS, "Hello", difference


def _segments(files: ComparedFiles) -> _Rows:
    """Classes of tokenizers that give both texts of a pair segment 0."""
    is_albert = files.named_class in ALBERT
    is_bert = files.word_pieces is not None and files.model_type in ("bert", "electra")
    if not (is_albert or is_bert) or files.config.get("type_vocab_size") == 1:
        return
    is_without = is_albert or files.named_class.startswith("DistilBert") or files.token_class is TokenizerClass.GENERIC
    inputs = files.tokenizer_config.get("model_input_names") or ()
    if is_without and "token_type_ids" not in inputs:
        difference = (
            f"{files.named_class} gives both texts of a pair segment 0; this package gives the second segment 1."
        )
        yield "tokenizer", TRANSFORMERS, "Hello [SEP] world", difference


def _lengths(files: ComparedFiles) -> _Rows:
    """Maximum lengths beyond the positions, and lengths that only sentence-transformers reads."""
    stated = files.tokenizer_config.get("model_max_length")
    length = int(stated) if isinstance(stated, int | float) and stated < _LONGEST else None
    positions = files.config.get("max_position_embeddings")
    if not isinstance(positions, int):
        return
    ours, usable = files.checkpoint.max_length(), files.checkpoint.config.max_sequence_length
    text = f"a text of more than {ours} tokens"
    theirs = usable if length is None else min(length, usable)
    if length is not None and length > usable:
        yield "length", TRANSFORMERS, text, f"It cuts at {length} tokens and fails; this package cuts at {ours}."
    elif files.length is not None and files.length < theirs:
        difference = (
            f"It reads up to {theirs} tokens; this package cuts at {ours}, as sentence_bert_config.json states."
        )
        yield "length", TRANSFORMERS, text, difference
    elif length is not None and length < ours:
        difference = f"It cuts at {length} tokens, as tokenizer_config.json states; this package cuts at {ours}."
        yield "length", TRANSFORMERS, f"a text of more than {length} tokens", difference
    if files.checkpoint.truncation_side() == "left":
        difference = "They keep the first tokens; this package keeps the last, as truncation_side states."
        yield "length", f"{SERVER}, {KERAS_HUB}", text, difference
    cut = (files.stored.get("truncation") or {}).get("max_length", ours)
    if cut < ours:
        difference = f"It cuts at {cut} tokens, by the truncation in tokenizer.json; this package cuts at {ours}."
        yield "length", LIBRARY, f"a text of more than {cut} tokens", difference
    longest = files.length or min(length or positions, positions)
    if files.modules and longest > usable:
        difference = f"It cuts at {longest} tokens, and the model has {usable} positions; this package cuts at {ours}."
        yield "length", SENTENCE_TRANSFORMERS, text, difference


def _lowercase(files: ComparedFiles) -> _Rows:
    """`do_lower_case` of sentence-transformers, for a tokenizer that keeps capitals."""
    if files.lowercase and files.options is not None and not files.options["lowercase"]:
        difference = "They keep capital letters; this package lower-cases texts, as sentence_bert_config.json states."
        yield "casing", f"{TRANSFORMERS}, {SERVER}, {KERAS_HUB}", "Hello", difference


def _pooling(files: ComparedFiles) -> _Rows:
    """Modules that others do not read, or read in part."""
    kinds = [kind for kind, _ in files.modules]
    if "Pooling" not in kinds:
        return
    folder = files.modules[kinds.index("Pooling")][1]
    values = optional_json(files.root / folder / "config.json")
    flags = [mode for flag, mode in modules.POOLING_FLAGS.items() if values.get(flag)]
    stated = values.get("pooling_mode", flags or ["mean"])
    modes = [stated] if isinstance(stated, str) else list(stated)
    if folder != "1_Pooling" and modes != ["cls"]:
        yield "pooling", SERVER, "Hello", f"It reads 1_Pooling only, and takes [CLS]; this package pools by {modes}."
    if folder == "1_Pooling" and values and not {"cls", "mean"}.intersection(flags):
        difference = f"It fails without pooling_mode_cls_token or _mean_tokens set; this package pools by {modes}."
        yield "pooling", SERVER, "Hello", difference
    if len(modes) > 1 and "pooling_mode" not in values:
        yield "pooling", f"{SERVER}, {KERAS_HUB}", "Hello", f"They pool by one mode; this package by all of {modes}."
    types = {module["type"] for module in read_json(files.root / modules.MODULES_FILE)}
    if "Dense" in kinds and not types <= _SERVER_MODULES:
        difference = "It leaves out dense layers under the new names in modules.json; this package applies them."
        yield "pooling", SERVER, "Hello", difference
    if files.model_type not in ("bert", "xlm-roberta") or folder != "1_Pooling":
        return
    theirs = next((mode for mode in ("cls", "max") if mode in flags), "mean")
    is_scaled = modes == ["mean_sqrt_len_tokens"] and "Normalize" in kinds
    if len(modes) == 1 and modes != [theirs] and not is_scaled:
        yield "pooling", KERAS_HUB, "Hello", f"It pools by {theirs!r}; this package by {modes[0]!r}."
    if "Dense" in kinds:
        yield (
            "pooling",
            KERAS_HUB,
            "Hello",
            "It leaves out the dense layers of modules.json; this package applies them.",
        )


def _prompts(files: ComparedFiles) -> _Rows:
    """A prompt that sentence-transformers puts before each text, vectors that it cuts, and how it compares them."""
    values = optional_json(files.root / modules.MODEL_FILE) if files.modules else {}
    prompts, name = values.get("prompts"), values.get("default_prompt_name")
    prompt = prompts.get(name) if isinstance(prompts, dict) else None
    if prompt:
        difference = f"They read the text alone; this package puts the default prompt {prompt!r} before it."
        yield "prompts", f"{TRANSFORMERS}, {SERVER}, {KERAS_HUB}", f"{prompt}Hello", difference
    if files.modules and (width := modules.read_truncation(files.root)):
        difference = f"They return whole vectors; this package their first {width} values, as truncate_dim states."
        yield "pooling", f"{SERVER}, {KERAS_HUB}", "Hello", difference
    kinds = [kind for kind, _ in files.modules]
    normalizes = "Normalize" in kinds
    if "Pooling" in kinds and (stated := modules.other_similarity(files.root, normalizes=normalizes)):
        difference = f"Its `similarity` is {stated!r}, as similarity_fn_name states; here it is the cosine."
        yield "similarity", SENTENCE_TRANSFORMERS, "Hello", difference


def _scores(files: ComparedFiles) -> _Rows:
    """Scores of a classifier, of which others see the number of labels only."""
    config = files.config
    if not any(str(name).endswith("ForSequenceClassification") for name in config.get("architectures") or ()):
        return
    problem, count = config.get("problem_type"), len(config.get("id2label") or range(config.get("num_labels", 2)))
    activation = stated_activation(files.root, config).get("activation")
    if count > 1 and problem == "multi_label_classification":
        difference = "It takes a softmax of all labels; this package takes a sigmoid of each, as problem_type states."
        yield "scores", SERVER, "Hello", difference
    elif count == 1 and activation not in (None, "sigmoid"):
        programs = SERVER if problem == "regression" else f"{TRANSFORMERS}, {SERVER}"
        difference = f"The score gets a sigmoid there; this package gives it {activation!r}, as sentence-transformers."
        yield "scores", programs, "Hello", difference
    elif count == 1 and problem == "regression" and activation is None:
        difference = "They take a sigmoid of the score; this package gives the number, as problem_type states."
        yield "scores", f"{SENTENCE_TRANSFORMERS}, {SERVER}", "Hello", difference


def _served(files: ComparedFiles) -> _Rows:
    """What text-embeddings-inference takes by the ends of names in `architectures`, and keys that it must have."""
    names = [str(name) for name in files.config.get("architectures") or ()]
    unnamed = [key for key in ("id2label", "label2id") if not files.config.get(key)]
    is_gte = unnamed and names == ["NewForTokenClassification"]  # a name that the server knows to be wrong
    if not is_gte and any(name.endswith("Classification") for name in names):
        if "Pooling" in [kind for kind, _ in files.modules]:
            difference = "It takes the classifier in config.json, and fails without its head; this package embeds."
            yield "scores", SERVER, "Hello", difference
        elif not any(name.endswith("ForSequenceClassification") for name in names):
            difference = "It takes every classifier as one of whole texts; this package labels each word."
            yield "scores", SERVER, "Hello", difference
        if unnamed:
            difference = f"It fails without {unnamed} in config.json; this package calls the labels LABEL_0, and so on."
            yield "scores", SERVER, "Hello", difference
    absent = [key for key in _SERVER_KEYS if key not in files.config]
    if absent and files.model_type in ("bert", *_OFFSET_TYPES):
        yield "config", SERVER, "Hello", f"It fails without {absent} in config.json; this package takes the defaults."


def _adapter(files: ComparedFiles) -> _Rows:
    """An adapter beside the weights."""
    if (files.folder / ADAPTER_CONFIG).is_file():
        difference = "They leave out the adapter beside the weights; this package adds it, as transformers with peft."
        yield "weights", f"{SERVER}, {KERAS_HUB}", "Hello", difference


def _positions(files: ComparedFiles) -> _Rows:
    """Positions that begin after the padding token's id."""
    padding = files.config.get("pad_token_id")
    if files.model_type in ("roberta", "xlm-roberta") and padding not in (None, 1):
        difference = f"It counts positions from 2; this package from {padding + 1}, one more than pad_token_id."
        yield "positions", KERAS_HUB, "Hello", difference
    if files.model_type == "xlm-roberta" and files.config.get("position_embedding_type") == "rotary":
        difference = (
            "Without the repository's own code they take XLM-RoBERTa's class, find none of its tensors, and begin with "
            "random weights; this package reads Jina embeddings v3."
        )
        yield "positions", f"{TRANSFORMERS}, {SENTENCE_TRANSFORMERS}", "Hello", difference


def _numbers(files: ComparedFiles) -> _Rows:
    """Half precision, and activations that others replace."""
    dtype = files.config.get("dtype") or files.config.get("torch_dtype")
    if dtype in _HALF:
        difference = f"They compute in {dtype}, as config.json states; this package loads float32."
        yield "dtype", f"{TRANSFORMERS}, {SENTENCE_TRANSFORMERS}", "Hello", difference
    activation = str(files.config.get("hidden_act", "gelu"))
    if files.model_type == "bert" and not activation.startswith("gelu"):
        difference = f"It computes GELU by tanh in every BERT; this package computes {activation}."
        yield "activation", KERAS_HUB, "Hello", difference


_RULES: tuple[Callable[[ComparedFiles], _Rows], ...] = (
    *(_classes, _characters, _normalizers, _vocabularies, _added_tokens, _ends, _segments),
    *(_lengths, _lowercase, _pooling, _prompts, _scores, _served, _adapter, _positions, _numbers),
)
