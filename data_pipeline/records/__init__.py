"""Folders of TFRecords: their schema, manifest and order; knows nothing of how they are made."""
