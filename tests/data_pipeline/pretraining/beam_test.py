"""Beam writes the bytes that the local program writes."""

import gzip

import pytest

from data_pipeline.corpus.documents import Corpus
from data_pipeline.errors import UserError
from data_pipeline.pretraining.creation import create_pretraining_data, make_plan
from data_pipeline.pretraining.settings import PretrainingSettings

pytest.importorskip("apache_beam", reason="SKIPPED: Beam is not installed (requirements-beam.txt)")

SEVERAL_PROCESSES = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")


@pytest.fixture
def corpus_dir(tmp_path, documents_text):
    """Small files, a large one and a compressed one; a third of the documents come twice."""
    texts = ["\n\n".join(documents_text[i * 40 : i * 40 + 60]) for i in range(5)]
    folder = tmp_path / "corpus"
    folder.mkdir()
    for i, text in enumerate(texts):
        (folder / f"{i}.txt").write_text(text[:5000], encoding="utf-8")
    (folder / "5.txt").write_bytes("\n\n".join(texts).encode("utf-8") + b"\n\nNo \xff here.\n")
    (folder / "6.txt.gz").write_bytes(gzip.compress("\n\n".join(texts[1:]).encode("utf-8")))
    return folder


@pytest.mark.parametrize("options", [(), SEVERAL_PROCESSES], ids=["one process", "several"])
@pytest.mark.parametrize(
    "deduplicate, settings",
    [
        (False, {"dupe_factor": 2}),
        (True, {"dupe_factor": 2}),
        (True, {"dupe_factor": 1, "masking": "dynamic"}),
        (False, {"dupe_factor": 1, "sentence_objective": "nsp"}),
    ],
)
def test_equal_to_the_local_program(
    tmp_path, corpus_dir, tokenizer, deduplicate, settings, options, contents
):
    from data_pipeline.pretraining import beam

    corpus = Corpus(f"{corpus_dir}/*", deduplicate=deduplicate)
    settings = PretrainingSettings(max_seq_length=64, **settings)
    local = create_pretraining_data(
        corpus, str(tmp_path / "local"), tokenizer, settings, shard_mb=0.02
    )
    plan = make_plan(corpus, str(tmp_path / "beam"), tokenizer, settings, shard_mb=0.02)
    manifest = beam.create_pretraining_data(plan, str(tmp_path / "beam"), options=options)
    assert manifest["num_records"] == local["num_records"]
    assert ("duplicate document, dropped" in manifest["corpus"]["problems"]) == deduplicate
    assert contents(tmp_path / "beam") == contents(tmp_path / "local")


def test_names_of_files_are_not_in_the_pipeline(tmp_path, corpus_dir, tokenizer, monkeypatch):
    """Tens of thousands of them would be more than a description of a pipeline may hold."""
    import apache_beam

    from data_pipeline.pretraining import beam

    def run(pipeline, *unused):
        description = pipeline.to_runner_api().SerializeToString()
        assert b"Groups of files" in description and b"3.txt" not in description
        raise KeyboardInterrupt

    monkeypatch.setattr(apache_beam.Pipeline, "run", run)
    settings = PretrainingSettings(max_seq_length=64)
    corpus = Corpus([str(path) for path in corpus_dir.iterdir()], deduplicate=True)
    plan = make_plan(corpus, str(tmp_path / "beam"), tokenizer, settings)
    with pytest.raises(KeyboardInterrupt):
        beam.create_pretraining_data(plan, str(tmp_path / "beam"))


def test_errors_are_the_users(tmp_path, tokenizer):
    from data_pipeline.pretraining import beam

    (tmp_path / "a.txt").write_bytes("Hello\n".encode("utf-16"))
    settings = PretrainingSettings(max_seq_length=64)
    plan = make_plan(Corpus(f"{tmp_path}/a.txt"), str(tmp_path / "x"), tokenizer, settings)
    with pytest.raises(UserError, match=r"a.txt is UTF-16; convert it to UTF-8"):
        beam.create_pretraining_data(plan, str(tmp_path / "x"))
