"""Pre-training data (masked words, sentence order) from documents: settings, examples, batches."""
