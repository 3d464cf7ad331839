"""Settings are checked, and come back from a manifest."""

import dataclasses

import pytest

from data_pipeline.errors import UserError
from data_pipeline.pretraining_settings import PretrainingSettings
from data_pipeline.records import read_manifest


@pytest.mark.parametrize("length, most", [(128, 19), (512, 77), (8, 1)])
def test_automatic_number_of_predictions(length, most):
    assert PretrainingSettings(max_seq_length=length).max_predictions_per_seq == most


@pytest.mark.parametrize(
    "field, value",
    [("max_seq_length", 4), ("max_predictions_per_seq", 511), ("masked_lm_prob", 0.0), ("ngram", -1),
     ("short_seq_prob", 1.5), ("dupe_factor", -1), ("sentence_objective", "x"), ("seed", -1),
     ("masking", "x")],
)  # fmt: skip
def test_impossible_settings_name_flag_and_value(field, value):
    with pytest.raises(UserError, match=f"--{field}.*{value}"):
        PretrainingSettings(**{field: value})


def test_manifests_hold_all_settings(records_dir):
    settings = PretrainingSettings.from_manifest(read_manifest(records_dir))
    assert settings == PretrainingSettings(max_seq_length=64, dupe_factor=2, masking="static")
    assert dataclasses.replace(settings, seed=1) != settings
