"""Settings are checked, and come back from a manifest."""

import dataclasses

import pytest

from data_pipeline.errors import UserError
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.records.record_folder import read_manifest


@pytest.mark.parametrize(
    "length, share, most",
    [
        *((128, 0.15, 19), (512, 0.15, 77), (8, 0.15, 1)),
        *((16, 0.01, 1), (16, 0.15, 2), (16, 0.5, 8), (16, 0.99, 14)),
    ],
)
def test_automatic_number_of_predictions(length, share, most):
    """At least one; special pieces are left."""
    settings = PretrainingSettings(max_seq_length=length, masked_lm_prob=share)
    assert settings.max_predictions_per_seq == most


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


def test_manifests_hold_later_settings_where_they_are_used():
    """Folders of versions without them are made again, byte for byte."""
    later = {"recurring_mask_share": 0.5, "segments": "dynamic", "mask_schedule": "0.3@0"}
    assert not set(later) & set(PretrainingSettings().to_manifest())
    settings = PretrainingSettings(**later)
    assert PretrainingSettings.from_manifest({"settings": settings.to_manifest()}) == settings


def test_dynamic_segments_are_of_a_chunk_of_sentences():
    assert PretrainingSettings(segments="dynamic", sentence_objective="none").max_num_tokens == 510


def test_manifests_hold_all_settings(records_dir):
    settings = PretrainingSettings.from_manifest(read_manifest(records_dir))
    assert settings == PretrainingSettings(max_seq_length=64, dupe_factor=2, masking="static")
    assert dataclasses.replace(settings, seed=1) != settings


@pytest.mark.parametrize(
    "field, allowed, refused",
    [
        ("max_seq_length", [8, 9], [7]),
        ("max_predictions_per_seq", [0, 1, 510], [-1, 511]),
        ("masked_lm_prob", [0.001, 0.999], [0.0, 1.0]),
        ("ngram", [0, 1], [-1]),
        ("short_seq_prob", [0.0, 1.0], [-0.1, 1.1]),
        ("recurring_mask_share", [0.0, 1.0], [-0.1, 1.1]),
        ("dupe_factor", [0, 1], [-1]),
        ("seed", [0], [-1]),
        ("sentence_objective", ["nsp"], ["x"]),
        ("masking", ["static"], ["x"]),
    ],
)
def test_limits(field, allowed, refused):
    for value in allowed:
        PretrainingSettings(**{field: value})
    for value in refused:
        with pytest.raises(UserError, match=f"^--{field}={value}(: | leaves )"):
            PretrainingSettings(**{field: value})


def test_a_schedule_of_shares_has_room_for_the_largest():
    settings = PretrainingSettings(mask_schedule="0.1@0,0.4@10")
    assert (settings.masked_lm_prob, settings.max_predictions_per_seq) == (0.4, 205)
    assert [settings.mask_shares.at(step) for step in (9, 10)] == [0.1, 0.4]
    assert PretrainingSettings(masked_lm_prob=0.2).mask_shares.at(7) == 0.2
    assert dataclasses.replace(settings, max_predictions_per_seq=60, seed=3).masked_lm_prob == 0.4


SCHEDULE, CHUNKS = {"mask_schedule": "0.1@0"}, {"segments": "dynamic"}
NO_CHUNKS = "^--segments=dynamic requires --masking=dynamic, --sent"


@pytest.mark.parametrize(
    "given, message",
    [
        (SCHEDULE | {"masking": "static"}, "^--mask_schedule=0.1@0 is for .*; received --masking="),
        (SCHEDULE | {"masked_lm_prob": 0.2}, "^--masked_lm_prob=0.2 and --mask_schedule=0.1@0 are"),
        ({"mask_schedule": "0.1@5"}, "^--mask_schedule=0.1@5: expected VALUE@STEP"),
        ({"mask_schedule": ""}, "^--mask_schedule=: expected VALUE@STEP"),
        (CHUNKS | {"masking": "static"}, NO_CHUNKS),
        (CHUNKS | {"sentence_objective": "nsp"}, NO_CHUNKS),
        (CHUNKS | {"sentence_objective": "none", "pack_documents": True}, NO_CHUNKS),
        ({"pack_documents": True}, "^--pack_documents=true requires --sentence_obj"),
    ],
)
def test_settings_that_do_not_go_together(given, message):
    with pytest.raises(UserError, match=message):
        PretrainingSettings(**given)


def test_room_for_text_depends_on_the_number_of_segments():
    room = {name: PretrainingSettings(max_seq_length=64, sentence_objective=name).max_num_tokens
            for name in ("sop", "nsp", "none")}  # fmt: skip
    assert room == {"sop": 61, "nsp": 61, "none": 62}


def test_the_rule_of_masking(wordpiece):
    rule = PretrainingSettings(max_seq_length=64, mask_unknown=False).masking_rule(wordpiece)
    assert (rule.rate, rule.max_predictions, rule.ngram) == (0.15, 10, 3)
    assert (rule.favor_shorter, rule.by_span, rule.whole_words) == (True, False, True)
    assert (rule.excluded_id, rule.mask_id) == (wordpiece.unk_id, wordpiece.mask_id)
    special = {0, 2, 3, 4, 5}
    assert set(rule.replacement_ids.tolist()) == {*range(wordpiece.vocab_size)} - special
    changed = PretrainingSettings(
        mask_by_span=True, whole_word_mask=False, favor_shorter_ngram=False
    )
    other = changed.masking_rule(wordpiece)
    assert (other.by_span, other.whole_words, other.favor_shorter) == (True, False, False)
    assert other.excluded_id is None and other.ngram == 1
