"""Settings are checked, and come back from a manifest."""

import dataclasses

import pytest

from data_pipeline.errors import UserError
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.records.record_folder import read_manifest


@pytest.mark.parametrize("length, most", [(128, 19), (512, 77), (8, 1)])
def test_automatic_number_of_predictions(length, most):
    assert PretrainingSettings(max_seq_length=length).max_predictions_per_seq == most


@pytest.mark.parametrize(
    "field, value",
    [("max_seq_length", 4), ("max_predictions_per_seq", 511), ("masked_lm_prob", 0.0),
     ("ngram", -1), ("short_seq_prob", 1.5), ("dupe_factor", -1), ("sentence_objective", "x"),
     ("seed", -1), ("masking", "x")],
)  # fmt: skip
def test_impossible_settings_name_flag_and_value(field, value):
    with pytest.raises(UserError, match=f"--{field}.*{value}"):
        PretrainingSettings(**{field: value})


@pytest.mark.parametrize(
    "given, masking, copies, ngram",
    [
        ({}, "dynamic", 1, 3),
        ({"masking": "static"}, "static", 10, 3),
        ({"dupe_factor": 4}, "dynamic", 4, 3),
        ({"whole_word_mask": False}, "dynamic", 1, 1),
        ({"whole_word_mask": False, "ngram": 3}, "dynamic", 1, 3),
    ],
)
def test_defaults_depend_on_what_is_given(given, masking, copies, ngram):
    settings = PretrainingSettings(**given)
    found = (settings.masking, settings.dupe_factor, settings.ngram)
    assert found == (masking, copies, ngram)
    assert dataclasses.replace(settings, seed=3).dupe_factor == copies


def test_older_manifests_mean_what_they_meant():
    """Those without the latest settings."""
    old = {**dataclasses.asdict(PretrainingSettings(masking="static")), "input_format": "auto"}
    for name in ("whole_word_mask", "mask_unknown", "pack_documents"):
        del old[name]
    found = PretrainingSettings.from_manifest({"settings": old})
    assert found == PretrainingSettings(masking="static")
    assert (found.whole_word_mask, found.mask_unknown, found.pack_documents) == (True, True, False)


def test_manifests_hold_all_settings(records_dir):
    settings = PretrainingSettings.from_manifest(read_manifest(records_dir))
    assert settings == PretrainingSettings(max_seq_length=64, dupe_factor=2, masking="static")
    assert dataclasses.replace(settings, seed=1) != settings
