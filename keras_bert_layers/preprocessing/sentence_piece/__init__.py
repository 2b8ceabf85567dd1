"""SentencePiece: the tokenizer of XLM-RoBERTa and its relatives."""
