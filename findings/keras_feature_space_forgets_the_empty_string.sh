#!/usr/bin/env bash
# keras 3.15.1, tensorflow 2.21.0: a `FeatureSpace` that was adapted to a column with empty strings, as the missing values
# of a CSV file are, reads back without that category if it is the last of its vocabulary. The vocabulary is saved as a
# text with a term on each line, and the empty last line is not a line for the reader. There is no warning: the empty
# string becomes an unknown one, the features are one narrower, and all columns after it stand one place earlier.
#
# A good guess is that a `.keras` file gives the features that the space gave before it was saved.
# Only the last category is concerned; terms are sorted, the rarest last.
#
# Output seen:
#   before, 7 features
#     country '': 0 0 0 1 0 1 0
#     country 'fr': 0 0 1 0 0 1 0
#   read back, 6 features
#     country '': 1 0 0 0 1 0
#     country 'fr': 0 0 1 0 1 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet keras==3.15.1 tensorflow==2.21.0
cat >"$folder/try.py" <<'EOF'
import sys
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

file = Path(sys.argv[1]) / "space.keras"
rows = {
    "country": np.array(["de", "de", "de", "fr", "fr", ""]),
    "genre": np.array(["film", "book", "film", "book", "film", "film"]),
}
kinds = dict.fromkeys(rows, "string_categorical")
space = keras.utils.FeatureSpace(kinds, output_mode="concat")
space.adapt(tf.data.Dataset.from_tensor_slices(rows))
space.save(file)
widths = []
for name, one in (("before", space), ("read back", keras.models.load_model(file))):
    found = {
        country: np.asarray(one({"country": np.array([country]), "genre": np.array(["film"])}))[0].astype(int)
        for country in ("", "fr")
    }
    widths.append(len(found["fr"]))
    print(f"{name}, {widths[-1]} features")
    for country, features in found.items():
        print(f"  country {country!r}:", *features)
    is_known = bool(found[""][0] == 0)
    assert is_known == (name == "before")
assert widths == [7, 6]
EOF
"$folder/env/bin/python" "$folder/try.py" "$folder" 2>/dev/null
