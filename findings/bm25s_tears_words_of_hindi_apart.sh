#!/usr/bin/env bash
# bm25s 0.2.14: its own tokenizer tears the words of Hindi apart at vowel signs, and drops most of what is left.
#
# One would think that a pattern of "word characters" leaves a word whole in every language. But the default pattern is
# the one of scikit-learn, two or more of Python's `\w`, and a vowel sign such as U+093F is a mark, which `\w` is not.
# So "मुंबई" (Mumbai) is indexed as its last two letters, "दिल मेरा है" (my heart is) as nothing at all, and the query
# for one word finds every word with these two letters. There is no warning, and scores look like scores. The same
# pattern meets every script with vowel signs (Tamil, Bengali, Thai, Khmer), and scikit-learn's `CountVectorizer` and
# `TfidfVectorizer`. The cure is a pattern that splits at whitespace, such as r"[^\s]+", or a tokenizer of one's own.
#
# Seen: tokens [['बई', 'सम'], []], the query "बई" finds the document about मुंबई with a score above 0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet bm25s==0.2.14 scikit-learn==1.9.1
cat >"$folder/program.py" <<'END'
import bm25s
from sklearn.feature_extraction.text import CountVectorizer

DOCUMENTS = ["मुंबई में समुद्र है", "दिल मेरा है"]

tokenized = bm25s.tokenize(DOCUMENTS, stopwords=None, show_progress=False)
names = {index: token for token, index in tokenized.vocab.items()}
tokens = [[names[index] for index in row] for row in tokenized.ids]
print("tokens", tokens)
assert tokens == [["बई", "सम"], []], "words end at vowel signs, and single letters are dropped"

index = bm25s.BM25()
index.index(tokenized, show_progress=False)
query = bm25s.tokenize(["बई"], stopwords=None, show_progress=False)
found = index.retrieve(query, k=1, show_progress=False)
print("the document of a piece of a word", found.documents.tolist(), found.scores.round(2).tolist())
assert found.documents[0, 0] == 0 and found.scores[0, 0] > 0

assert sorted(CountVectorizer().fit(DOCUMENTS).get_feature_names_out()) == ["बई", "सम"], "scikit-learn's are the same"
whole = bm25s.tokenize(DOCUMENTS, stopwords=None, show_progress=False, token_pattern=r"[^\s]+")
assert set(whole.vocab) >= {"मुंबई", "दिल"}, "a pattern of what is not whitespace leaves words whole"
END
"$folder/environment/bin/python" "$folder/program.py"
