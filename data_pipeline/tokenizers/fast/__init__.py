"""Fast tokenizing of a corpus, by a table of words: `encoder.fast_encoder` is its only door."""
