"""Checkpoints that people use, as small directories with random weights.

Each row is made from what is public about a checkpoint on the hub: the keys of its `config.json`, the files of its
tokenizer, the names of its tensors. The sizes are small and the weights random.
"""

from family_table.classifiers import ANSWERERS, CLASSIFIERS, TAGGERS
from family_table.encoders import ENCODERS
from family_table.family import Family
from family_table.refused import REFUSED
from family_table.relatives import RELATIVES
from family_table.sentence_encoders import SENTENCE_ENCODERS

__all__ = ["FAMILIES", "GROUPS", "Family"]

GROUPS: dict[str, tuple[Family, ...]] = {
    "Encoders and masked language models": ENCODERS,
    "Sentence encoders": SENTENCE_ENCODERS,
    "Classifiers, cross-encoders and choices": CLASSIFIERS,
    "Token classifiers": TAGGERS,
    "Question answerers": ANSWERERS,
    "MPNet, DeBERTa, ALBERT, ModernBERT and encoders with rotary positions": RELATIVES,
}
FAMILIES: tuple[Family, ...] = (*(family for group in GROUPS.values() for family in group), *REFUSED)
