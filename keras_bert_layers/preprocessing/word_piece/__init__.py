"""WordPiece: BERT's tokenizer, its vocabulary and its trainer."""
