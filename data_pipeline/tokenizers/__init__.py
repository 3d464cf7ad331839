"""Tokenizers from text to ids: SentencePiece and WordPiece, in Python and in TensorFlow graphs."""
