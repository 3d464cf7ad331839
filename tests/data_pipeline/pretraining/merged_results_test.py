"""Parts of a corpus are read, and what was made of them merged, in any order."""

import random
from pathlib import Path

from data_pipeline.corpus import ranges
from data_pipeline.corpus.documents import Corpus
from data_pipeline.pretraining import block_records
from data_pipeline.pretraining.creation import create_pretraining_data, finish, make_plan, prepare
from data_pipeline.pretraining.merged_results import MergedResults
from data_pipeline.pretraining.settings import PretrainingSettings


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def test_parts_read_by_anyone_and_merged_in_any_order(tmp_path, documents_text, tokenizer):
    """What Beam does, without it: the folder is that of the local program to the byte."""
    for name, texts in {"a": documents_text[:90], "b": documents_text[:9]}.items():
        content = "\n\n".join(texts).encode("utf-8").replace(b"string", b"str\xffng")
        (tmp_path / f"{name}.txt").write_bytes(content)
    corpus = Corpus(f"{tmp_path}/*.txt", deduplicate=True)
    settings = PretrainingSettings(max_seq_length=64, dupe_factor=2)
    local = create_pretraining_data(
        corpus, str(tmp_path / "local"), tokenizer, settings, shard_mb=0.01
    )
    assert local["corpus"]["problems"]["duplicate document, dropped"] == 9
    assert len({example.split(":")[1] for example in local["corpus"]["problem_examples"]}) > 9

    output_dir = str(tmp_path / "apart")
    plan = make_plan(corpus, output_dir, tokenizer, settings, shard_mb=0.01)
    prepare(plan, output_dir, overwrite=False)
    job, block_bytes = plan.job, plan.block_bytes
    parts = [
        part
        for group, files in enumerate(plan.groups)
        for part in ranges.divide(group, files, job.corpus, block_bytes)
    ]
    rng = random.Random(0)
    rng.shuffle(parts)
    firsts = {}
    for part in parts:
        for digest, place in block_records.document_places(part, job, block_bytes):
            firsts[digest] = min(firsts.get(digest, place), place)
    merged = [MergedResults(tokenizer.vocab_size) for _ in range(4)]
    for part in parts:
        kept = {place[1:] for place in firsts.values() if place.group == int(part.name[:5])}
        for result in block_records.process_part(part, kept, job, block_bytes):
            rng.choice(merged[:3]).add(result)
    for other in (merged[2], merged[0], merged[1]):
        merged[3].merge(MergedResults.from_json(other.to_json()))
    finish(plan, output_dir, tokenizer, merged[3])
    assert contents(output_dir) == contents(tmp_path / "local")
