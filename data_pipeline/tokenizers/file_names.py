"""The names of a vocabulary's files, in folders of data and of models."""

SENTENCEPIECE = "spiece.model"
WORDPIECE = "vocab.txt"
MANIFEST = "vocabulary.json"  # In a folder that train_vocabulary wrote.
GOOGLE_SENTENCEPIECE = "30k-clean.model"  # In the archives of google-research/albert.
KERASHUB_SENTENCEPIECE = "assets/tokenizer/vocabulary.spm"  # In presets of KerasHub.
SETTINGS = "tokenizer_settings.json"  # Not tokenizer.json, which is Hugging Face's format.
