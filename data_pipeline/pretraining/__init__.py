"""Documents to masked words and sentence order: settings, examples, records, batches."""
