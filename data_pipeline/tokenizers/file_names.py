"""The names of a vocabulary's files, in folders of data and of models."""

SENTENCEPIECE = "spiece.model"
WORDPIECE = "vocab.txt"
MANIFEST = "vocabulary.json"  # Of a folder that train_vocabulary wrote.
SETTINGS = "tokenizer_settings.json"  # tokenizer.json is one of another format, Hugging Face's.
