"""Beam writes the bytes that the local program writes."""

from pathlib import Path

import pytest

from data_pipeline.documents import Corpus
from data_pipeline.errors import UserError
from data_pipeline.pretraining_data import create_pretraining_data, make_plan
from data_pipeline.pretraining_settings import PretrainingSettings

pytest.importorskip("apache_beam", reason="SKIPPED: Beam is not installed (requirements-beam.txt)")


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


@pytest.mark.parametrize("deduplicate", [False, True])
def test_equal_to_the_local_program(tmp_path, documents_text, tokenizer, deduplicate):
    from data_pipeline import beam_pipeline

    for i in range(5):
        text = "\n\n".join(documents_text[i * 40 : i * 40 + 60])  # A third comes twice.
        (tmp_path / f"{i}.txt").write_text(text, encoding="utf-8")
    corpus = Corpus(f"{tmp_path}/*.txt", deduplicate=deduplicate)
    settings = PretrainingSettings(max_seq_length=64, dupe_factor=2)
    local = create_pretraining_data(
        corpus, str(tmp_path / "local"), tokenizer, settings, shard_mb=0.02
    )
    plan = make_plan(corpus, str(tmp_path / "beam"), tokenizer, settings, shard_mb=0.02)
    manifest = beam_pipeline.create_pretraining_data(plan, str(tmp_path / "beam"))
    assert manifest["num_records"] == local["num_records"]
    assert bool(manifest["corpus"]["problems"]) == deduplicate
    assert contents(tmp_path / "beam") == contents(tmp_path / "local")


def test_errors_are_the_users(tmp_path, tokenizer):
    from data_pipeline import beam_pipeline

    (tmp_path / "a.txt").write_bytes("Hello\n".encode("utf-16"))
    settings = PretrainingSettings(max_seq_length=64)
    plan = make_plan(Corpus(f"{tmp_path}/a.txt"), str(tmp_path / "x"), tokenizer, settings)
    with pytest.raises(UserError, match=r"a.txt is UTF-16; convert it to UTF-8"):
        beam_pipeline.create_pretraining_data(plan, str(tmp_path / "x"))
