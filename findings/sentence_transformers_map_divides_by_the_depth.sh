#!/usr/bin/env bash
# sentence-transformers 6.2.0: `map@k` of InformationRetrievalEvaluator divides the sum of precisions by the smaller of k and
# the number of relevant documents. trec_eval's `map_cut.k`, which BEIR and most papers report as MAP@k, divides by the number
# of relevant documents. Where a query has more of them than k, the first is larger: 1.0 and 0.33 for two right ones of six.
#
# A good guess is that the names mean the same, as they do for nDCG@k of binary grades, recall@k and precision@k of both.
#
# Output seen:
#   recall@2 0.3333 0.3333
#   precision@2 1.0000 1.0000
#   map@2 1.0000 0.3333
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet sentence-transformers==6.2.0 transformers==5.24.0 torch==2.13.0 \
    pytrec-eval-terrier==0.5.11
cat >"$folder/try.py" <<'EOF'
import pytrec_eval
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

relevant = {f"d{number}" for number in range(6)}
corpus = dict.fromkeys([*sorted(relevant), "x"], "a text")
options = {"map_at_k": [2], "precision_recall_at_k": [2]}
evaluator = InformationRetrievalEvaluator({"q": "a question"}, corpus, {"q": relevant}, **options)
scores = {"d0": 3.0, "d1": 2.0, "x": 1.0}
ranking = [{"corpus_id": name, "score": score} for name, score in scores.items()]
ours = evaluator.compute_metrics([ranking])
theirs = pytrec_eval.RelevanceEvaluator({"q": dict.fromkeys(relevant, 1)}, {"map_cut.2", "recall.2", "P.2"})
theirs = theirs.evaluate({"q": scores})["q"]
found = {}
for name, key in (("recall", "recall_2"), ("precision", "P_2"), ("map", "map_cut_2")):
    found[name] = float(ours[f"{name}@k"][2]), theirs[key]
    print(f"{name}@2", *(f"{value:.4f}" for value in found[name]))
assert abs(found["recall"][0] - found["recall"][1]) < 1e-9
assert found["precision"] == (1.0, 1.0)
assert found["map"][0] == 1.0 and abs(found["map"][1] - 1 / 3) < 1e-9
EOF
"$folder/env/bin/python" "$folder/try.py" 2>/dev/null
