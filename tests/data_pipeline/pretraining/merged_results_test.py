"""Parts of a corpus are read, and what was made of them merged, in any order."""

import collections
import json
import random

from data_pipeline.corpus.documents import Corpus
from data_pipeline.corpus.report import ReadReport
from data_pipeline.pretraining import block_records
from data_pipeline.pretraining.block_records import BlockResult
from data_pipeline.pretraining.creation import create_pretraining_data, finish, make_plan, prepare
from data_pipeline.pretraining.merged_results import MergedResults
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.pretraining.statistics import RecordStatistics


def test_groups_read_by_anyone_and_merged_in_any_order(
    tmp_path, documents_text, tokenizer, contents
):
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
    job, corpus = plan.job, plan.job.corpus
    groups = list(enumerate(plan.groups))
    assert len(groups) > 1
    rng = random.Random(0)
    rng.shuffle(groups)
    firsts = {}
    for group in groups:
        blocks = corpus.blocks(*group, plan.block_bytes)
        for digest, place in block_records.document_places(blocks, corpus):
            firsts[digest] = min(firsts.get(digest, place), place)
    merged = [MergedResults(tokenizer.vocab_size) for _ in range(3)]
    for number, files in groups:
        kept = {place for place in firsts.values() if place.group == number}
        blocks = corpus.blocks(number, files, plan.block_bytes)
        for result in block_records.process_with_kept(blocks, kept, job):
            rng.choice(merged).add(result)
    for other in (merged[2], merged[0]):
        merged[1].merge(MergedResults.from_json(json.loads(json.dumps(other.to_json()))))
    finish(plan, output_dir, tokenizer, merged[1])
    assert contents(output_dir) == contents(tmp_path / "local")


def result(name, text_bytes, problems, examples):
    """What was made of a block: one file, named after it."""
    report = ReadReport(collections.Counter(problems), examples)
    statistics = RecordStatistics(3)
    statistics.records["records"] += 5
    shards = [{"name": f"{name}.tfrecord"}]
    return BlockResult(name, "key", text_bytes, shards, report, statistics)


def test_only_the_first_problems_are_named():
    merged = MergedResults(3)
    for index in (1, 0):
        examples = [f"a.txt:{line}: odd" for line in range(1, 16)]
        merged.add(result(f"00000-{index:05d}", 0, {}, examples))
    found = merged.examples()
    expected = [*range(1, 16), *range(1, 6)]
    assert found == [f"a.txt:{line}: odd" for line in expected]
