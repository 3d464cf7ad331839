"""Folders of TFRecords: schema, manifest and order; independent of how records are made."""
