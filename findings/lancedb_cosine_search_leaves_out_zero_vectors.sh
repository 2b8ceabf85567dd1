#!/usr/bin/env bash
# LanceDB 0.40.0: a search by cosine, exact and without a filter, never returns rows whose vector is zero, whatever the
# limit, and a query vector of zeros finds nothing. By "dot" and "l2" all rows are found.
#
# A good guess is that such a row has the cosine 0, as in sentence-transformers' `cos_sim`, and comes after all that are
# similar: a search that asks for as many rows as the table has would return each. Static embeddings and bags of words
# give zeros for a text of which no word is known, so these texts are in the table and in its count, and cannot be found.
#
# Output seen:
#   rows in the table: 4
#   cosine: rows [0, 2, 3]; for a query of zeros []
#   dot: rows [0, 1, 2, 3]; for a query of zeros [0, 1, 2, 3]
#   l2: rows [0, 1, 2, 3]; for a query of zeros [0, 1, 2, 3]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet lancedb==0.40.0 pyarrow==26.0.1
cat >"$folder/try.py" <<'EOF'
import sys

import lancedb

VECTORS = [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]
rows = [{"id": number, "vector": vector} for number, vector in enumerate(VECTORS)]
table = lancedb.connect(sys.argv[1]).create_table("texts", rows)
print("rows in the table:", table.count_rows())


def found(query, distance):
    return sorted(row["id"] for row in table.search(query).distance_type(distance).limit(10).to_list())


for distance in ("cosine", "dot", "l2"):
    one, none = found([1.0, 0.0], distance), found([0.0, 0.0], distance)
    print(f"{distance}: rows {one}; for a query of zeros {none}")
    assert (one, none) == (([0, 2, 3], []) if distance == "cosine" else ([0, 1, 2, 3], [0, 1, 2, 3]))
EOF
"$folder/env/bin/python" "$folder/try.py" "$folder/table"
