"""Files of text to blocks, documents and sentences; knows no tokens."""
