"""What a manifest says of records, and what of their vocabulary."""

import dataclasses

from data_pipeline.pretraining.manifest import manifest_fields
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.tokenizers.base import TokenizerSettings


def test_readers_find_everything(wordpiece):
    files = [{"name": f"{i}.tfrecord", "num_records": i} for i in (3, 4)]
    settings = PretrainingSettings(max_seq_length=64, max_predictions_per_seq=9, masking="static")
    assert manifest_fields(files, settings, wordpiece) == {
        "num_records": 7,
        "num_shards": 2,
        "files": files,
        "masking": "static",
        "max_seq_length": 64,
        "max_predictions": 9,
        "vocab_size": len(wordpiece.pieces),
        "vocab_fingerprint": wordpiece.fingerprint,
        "vocab_file": "vocab.txt",
        "label_counts_file": "label_counts.json",
        "tokenizer": dataclasses.asdict(TokenizerSettings(True, "google", True, True)),
    }
    empty = manifest_fields([], settings, wordpiece)
    assert (empty["num_records"], empty["num_shards"]) == (0, 0)
