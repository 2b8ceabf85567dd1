#!/usr/bin/env bash
# transformers 5.24.0: entities that the pipeline finds with a ModernBERT begin one byte early, at the space before them.
#
# One would think that `text[entity["start"]:entity["end"]]` is the entity, as it is with BERT and RoBERTa. RoBERTa's
# tokenizer trims the offsets of its tokens (`trim_offsets` of its post-processor); ModernBERT's is put together from
# the same byte-level pieces with a template as its post-processor, which does not. So each token but the first of a
# text begins at the space before its word, and so does every entity: a program that moves from RoBERTa to ModernBERT
# stores spans that are off by one, and a comparison with gold spans counts all of them as wrong. The pipeline does not
# trim, whatever `aggregation_strategy` says.
#
# The model here is small and has random weights; what it finds does not matter, only where words begin.
#
# Seen: spans (0, 3), (3, 9), (9, 14), ... of "The ferry left", with the texts "The", " ferry", " left".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet torch==2.13.0 transformers==5.24.0 tokenizers==0.23.3
cat >"$folder/program.py" <<'END'
import tokenizers
import torch
import transformers
from tokenizers import pre_tokenizers, processors

TEXT = "The ferry left at noon"
SPECIAL = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
NAMES = dict(zip(("unk_token", "cls_token", "sep_token", "pad_token", "mask_token"), SPECIAL))


def tokenizer(post_processor):
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    made.train_from_iterator([TEXT] * 9, trainer)
    made.post_processor = post_processor
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **NAMES)


# As in the `tokenizer.json` of ModernBERT, and as in RoBERTa's.
template = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
trimming = processors.RobertaProcessing(("[SEP]", 2), ("[CLS]", 1), trim_offsets=True, add_prefix_space=False)
torch.manual_seed(1)
config = transformers.ModernBertConfig(
    vocab_size=400, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, num_labels=1,
    pad_token_id=3, cls_token_id=1, sep_token_id=2, bos_token_id=1, eos_token_id=2,
)
model = transformers.ModernBertForTokenClassification(config).eval()
found = {}
for name, post_processor in {"modernbert": template, "roberta": trimming}.items():
    ask = transformers.pipeline("token-classification", model=model, tokenizer=tokenizer(post_processor))
    found[name] = [TEXT[entity["start"] : entity["end"]] for entity in ask(TEXT)]
    print(name, found[name])
assert found["modernbert"] == ["The", " ferry", " left", " at", " noon"], "spans hold the space"
assert found["roberta"] == ["The", "ferry", "left", "at", "noon"], "a trimming post-processor leaves it out"
END
"$folder/environment/bin/python" "$folder/program.py"
