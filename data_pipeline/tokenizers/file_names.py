"""The names of a vocabulary's files, in folders of data and of models."""

SENTENCEPIECE = "spiece.model"
WORDPIECE = "vocab.txt"
SETTINGS = "tokenizer_settings.json"  # tokenizer.json is one of another format, Hugging Face's.
