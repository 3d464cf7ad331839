"""Reads text files as blocks, documents and sentences; independent of tokens."""
