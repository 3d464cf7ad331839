"""The program in this process, on a small folder of records."""

from __future__ import annotations

import re

import pytest

from data_pipeline.corpus.documents import Corpus
from data_pipeline.pretraining.creation import create_pretraining_data
from data_pipeline.pretraining.settings import PretrainingSettings


@pytest.fixture(scope="module")
def folder(tmp_path_factory, small_corpus, wordpiece):
    """Some hundred records of 16 tokens, more than are read at once."""
    folder = tmp_path_factory.mktemp("inspected")
    (folder / "a.txt").write_text(small_corpus(150))
    settings = PretrainingSettings(max_seq_length=16, dupe_factor=2)
    corpus = Corpus(str(folder / "a.txt"), "lines")
    create_pretraining_data(corpus, str(folder / "data"), wordpiece, settings)
    return folder / "data"


@pytest.fixture
def inspect(result_of, folder):
    """(*flags) -> exit code, stdout, stderr."""

    def run(*argv: str, data=folder) -> tuple[int, str, str]:
        found = result_of("data_pipeline.inspect_records", f"--data={data}", *argv)
        return found.returncode, found.stdout, found.stderr

    return run


def test_numbers_columns_measures_and_records(inspect, folder):
    code, shown, _ = inspect("--num_records=70", "--measure=100", "--color=never")
    assert code == 0 and "\033[" not in shown
    sections = [part.splitlines()[0] for part in shown.split("\n\n")]
    assert sections[:4] == [
        f"{folder}:", "Columns (dynamic masking):", "Measured:",
        "To be predicted: input<label>, neighbors between { }: [MASK], left as it is, random "
        "piece.",
    ]  # fmt: skip
    assert "records measured    128" in shown, "whole batches of 64"
    numbers = [int(number) for number in re.findall(r"^Record (\d+): ", shown, re.M)]
    assert numbers == list(range(1, 71))
    records = shown.split("\nRecord ")[1:]
    assert records[0].split(":", 1)[1] != records[64].split(":", 1)[1]
    assert all("A: [CLS] " in record for record in records)


def test_nothing_is_shown_that_is_not_asked_for(inspect):
    code, shown, _ = inspect("--num_records=0", "--measure=0")
    assert code == 0 and "Columns" in shown
    assert "Measured" not in shown and "To be predicted" not in shown and "Record " not in shown
    code, shown, _ = inspect("--num_records=1", "--measure=0", "--color=always")
    assert code == 0 and shown.count("Record ") == 1 and "\033[2m[CLS]\033[0m" in shown


def test_no_more_records_than_there_are(inspect):
    _, shown, _ = inspect("--num_records=100000", "--measure=0")
    found = int(re.search(r"records +([\d,]+) in", shown)[1].replace(",", ""))
    assert shown.count("\nRecord ") == found > 128
