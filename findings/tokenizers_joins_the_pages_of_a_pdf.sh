#!/usr/bin/env bash
# tokenizers 0.23.3: BERT's normalizer deletes form feeds, so the last word of a page and the first of the next are one.
#
# One would think that a form feed is whitespace to a tokenizer, as it is to Python's `str.split` and to `\s`. Programs
# that extract text from PDF files put one between pages (`pdftotext` does). But BERT's clean-up counts only space, tab,
# line feed and carriage return, besides Unicode's space separators, as whitespace, and deletes every other control
# character: the form feed, the vertical tab and U+0085, the next line of old mainframes. What stood on both sides is
# one word then, most often `[UNK]` or pieces that mean something else. google-research/bert has the same rule, and the
# tokenizers of RoBERTa and XLM-RoBERTa do not: the same text is split there.
#
# Seen: 'the endthe start' from "the end\fThe start"; byte-level BPE keeps two words.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet tokenizers==0.23.3
cat >"$folder/program.py" <<'END'
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer, ByteLevel

normalizer, splitter = BertNormalizer(), BertPreTokenizer()
for name, character in {"form feed": "\f", "vertical tab": "\v", "next line": "\x85"}.items():
    text = normalizer.normalize_str(f"the end{character}The start")
    words = [word for word, _ in splitter.pre_tokenize_str(text)]
    print(name, repr(text), words)
    assert len("the end\fThe start".split()) == 4
    assert words == ["the", "endthe", "start"], "two words of two pages are one"
kept = [word for word, _ in ByteLevel(add_prefix_space=False).pre_tokenize_str("the end\fThe start")]
print("byte-level", kept)
assert "end" in kept[1] and "The" in kept[-2], "RoBERTa's tokenizer splits there"
END
"$folder/environment/bin/python" "$folder/program.py"
