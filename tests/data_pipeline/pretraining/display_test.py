"""Records are shown as what they are, and measured as counting by hand would."""

import types

import numpy as np
import pytest

from data_pipeline.pretraining import display
from data_pipeline.pretraining.dataset import pretraining_dataset
from data_pipeline.pretraining.display import Distributions, format_record
from data_pipeline.records import record_folder

TOKENIZER = types.SimpleNamespace(
    pieces=["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c"],
    cls_id=2,
    sep_id=3,
    mask_id=4,
    ids_to_pieces=lambda ids: [TOKENIZER.pieces[i] for i in ids],
)
BATCH = {
    "input_word_ids": np.array([[2, 4, 6, 3, 7, 5, 3, 0]] * 2),
    "input_mask": np.array([[1] * 7 + [0]] * 2),
    "input_type_ids": np.array([[0, 0, 0, 0, 1, 1, 1, 0]] * 2),
    "masked_lm_positions": np.array([[1, 2, 5, 0]] * 2),
    "masked_lm_ids": np.array([[5, 6, 7, 0]] * 2),
    "masked_lm_weights": np.array([[1.0, 1, 1, 0]] * 2),
    "sentence_order_labels": np.array([1, 0]),
    "example_weights": np.array([1.0, 0.0]),
}


def test_marks():
    assert format_record(BATCH, 0, TOKENIZER) == (
        "7 tokens, 3 to predict, swapped (or random B)\n"
        "  A: [CLS] {[MASK]<a> b<b>} [SEP]\n  B: c {a<c>} [SEP]"
    )
    colored = format_record(BATCH, 1, TOKENIZER, color=True)
    assert "in order" in colored
    assert "\033[33m[MASK]<a>\033[0m \033[32mb<b>\033[0m" in colored
    assert "\033[31ma<c>\033[0m" in colored and "\033[2m[SEP]\033[0m" in colored


def test_measures_of_records(records_dir):
    manifest = record_folder.read_manifest(records_dir)
    measured = Distributions(mask_id=4)
    for batch in pretraining_dataset(records_dir, 64, training=False).as_numpy_iterator():
        measured.add(batch)
    statistics = manifest["statistics"]
    assert measured.records == manifest["num_records"]
    assert measured.tokens == statistics["tokens"]
    assert measured.labels == statistics["predictions"]
    assert measured.swapped / measured.records == pytest.approx(statistics["label_balance"])


def test_one_segment_alone():
    batch = {**BATCH, "input_type_ids": np.zeros([2, 8], np.int64)}
    assert format_record(batch, 1, TOKENIZER) == (
        "7 tokens, 3 to predict, in order\n  A: [CLS] {[MASK]<a> b<b>} [SEP] c {a<c>} [SEP]\n  B: -"
    )


def test_the_legend():
    assert display.legend(color=False) == (
        "To be predicted: input<label>, neighbors between { }: [MASK], left as it is, random piece."
    )
    assert "\033[33m[MASK]\033[0m, \033[32mleft as it is\033[0m, \033[31mran" in display.legend(
        True
    )


def test_all_figures_of_what_was_measured():
    measured = Distributions(mask_id=4)
    measured.add(BATCH)
    measured.add({**BATCH, "example_weights": np.array([0.0, 1.0])})
    assert list(measured.rows()) == [
        ("records measured", "2"),
        ("mean length", "7.0"),
        ("to be predicted", "42.86% of the tokens"),
        ("input there", "[MASK] 33.3%, same 33.3%, random 33.3%"),
        ("runs of pieces", "1 50.0%  2 50.0%  3 0.0%  4 0.0%  5 0.0%  6+ 0.0%"),
        ("by 8th of the text", "0.0%  33.3%  33.3%  0.0%  0.0%  33.3%  0.0%  0.0%"),
        ("swapped pairs", "50.00%"),
    ]
    assert dict(Distributions(4).rows())["mean length"] == "0.0"


def test_runs_end_with_their_row_and_long_ones_count_together():
    """The last piece of a row and the first of the next one are no neighbors."""
    batch = {
        "input_word_ids": np.full([3, 10], 5),
        "input_mask": np.ones([3, 10], int),
        "masked_lm_positions": np.array([[1, 2, 3, 4, 5, 6, 7], [8, 9] + [0] * 5, [0] * 7]),
        "masked_lm_ids": np.full([3, 7], 6),
        "masked_lm_weights": np.array([[1.0] * 7, [1.0] * 2 + [0.0] * 5, [0.0] * 7]),
        "sentence_order_labels": np.zeros(3, int),
        "example_weights": np.ones(3),
    }
    measured = Distributions(mask_id=4)
    measured.add(batch)
    assert measured.runs.tolist() == [0, 1, 0, 0, 0, 1]
    assert measured.parts.tolist() == [1, 1, 1, 1, 2, 1, 1, 1]
    assert (measured.masked, measured.same, measured.labels) == (0, 0, 9)
