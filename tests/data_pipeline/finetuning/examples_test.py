"""Examples say where they stand, and a split says what was left out."""

from data_pipeline.finetuning.examples import ChoiceExample, Split, TextExample

TEXT = TextExample("7", "a", None, "0", "data/train.tsv", 9)


def test_places():
    assert TEXT.place == "data/train.tsv:9"
    choice = ChoiceExample("7", "a", "b", ("c", "d"), 1, "high", "dev/3.txt", 1)
    assert choice.place == "dev/3.txt:1"


def test_what_was_left_out_is_said():
    assert Split("train", [TEXT]).note == ""
    some = Split("train", [TEXT] * 4, (3, 8))
    assert len(some) == 4
    assert some.note == (
        "data/train.tsv: 2 of 6 rows are empty or lack columns and were left out (line 3, 8)."
    )
    ten, many = Split("train", [TEXT], (*range(1, 11),)), Split("train", [TEXT], (*range(1, 12),))
    assert "(line 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)." in ten.note
    assert "11 of 12 rows" in many.note and "9, 10, ...)." in many.note
