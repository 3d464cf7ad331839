"""Why tokenizing a corpus is fast: every word is tokenized once."""
