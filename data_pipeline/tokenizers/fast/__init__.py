"""Fast tokenizing of a corpus with a table of words; use it through `encoder.fast_encoder`."""
