"""Makes records with Apache Beam, on one machine or on a cluster; the bytes are those of
`creation.create_pretraining_data`.

One worker processes a group (small files, or one large file), so a corpus should have more files
than there are workers. All workers must reach the corpus, the vocabulary and the output folder by
the same paths (gs://, or a shared disk).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from data_pipeline.corpus.blocks import TextBlock, group_files
from data_pipeline.errors import UserError
from data_pipeline.files import atomic_files, lock
from data_pipeline.pretraining import block_records, creation
from data_pipeline.pretraining.block_records import BlockResult, DocumentPlace, Job
from data_pipeline.pretraining.creation import Plan
from data_pipeline.pretraining.merged_results import MergedResults


@functools.lru_cache(maxsize=1)
def _groups(files_path: str, block_bytes: int) -> list[list[str]]:
    """Groups of the files listed in the file `files_path`, which is read once per process."""
    files, sizes = zip(*atomic_files.read_json(files_path))
    return group_files(files, sizes, block_bytes)


def _numbers(count: int) -> Iterator[int]:
    yield from range(count)


def _blocks(group: int, files_path: str, job: Job, block_bytes: int) -> Iterator[TextBlock]:
    return job.corpus.blocks(group, _groups(files_path, block_bytes)[group], block_bytes)


def _places(
    group: int, files_path: str, job: Job, block_bytes: int
) -> Iterator[tuple[int, DocumentPlace]]:
    """(digest, place) of each document of a group."""
    blocks = _blocks(group, files_path, job, block_bytes)
    return block_records.document_places(blocks, job.corpus)


def _make_all(group: int, files_path: str, job: Job, block_bytes: int) -> Iterator[BlockResult]:
    for block in _blocks(group, files_path, job, block_bytes):
        yield block_records.process_block(block, [], job)


def _make_firsts(
    joined: tuple[int, dict[str, Iterable[Any]]], files_path: str, job: Job, block_bytes: int
) -> Iterator[BlockResult]:
    """Makes the records of those documents in a group that are the first with their text."""
    group, places = joined
    blocks = _blocks(group, files_path, job, block_bytes)
    return block_records.process_with_kept(blocks, frozenset(places["first"]), job)


class _Merge(beam.CombineFn):
    """Merges the results of blocks from all workers, in any order."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self._vocab_size = vocab_size

    def create_accumulator(self) -> MergedResults:
        return MergedResults(self._vocab_size)

    def add_input(self, merged: MergedResults, result: BlockResult) -> MergedResults:
        merged.add(result)
        return merged

    def merge_accumulators(self, accumulators: Iterable[MergedResults]) -> MergedResults:
        whole = self.create_accumulator()
        for merged in accumulators:
            whole.merge(merged)
        return whole

    def extract_output(self, merged: MergedResults) -> dict[str, Any]:
        return merged.to_json()


@lock.locks("output_dir")
def create_pretraining_data(
    plan: Plan, output_dir: str, *, options: Sequence[str] = (), overwrite: bool = False
) -> dict[str, Any]:
    """Runs a plan (`creation.make_plan`) as a Beam pipeline, with options such as
    "--runner=FlinkRunner", and publishes the result. Returns the manifest; raises the errors of
    `creation.create_pretraining_data`, and UserError for invalid options.
    """
    try:
        pipeline = beam.Pipeline(options=PipelineOptions(list(options)))
    except ValueError as error:
        raise UserError(f"--runner, --pipeline_option: {error}") from None
    manifest = creation.prepare(plan, output_dir, overwrite)
    if manifest:
        return manifest
    tokenizer = plan.job.load_tokenizer()
    # A remote pipeline does not return a value: its result is written to a file.
    results_path = os.path.join(plan.job.folder, f"results-{plan.fingerprint}.json")
    try:
        with pipeline:
            _build(pipeline, plan, tokenizer.vocab_size, results_path)
        merged = MergedResults.from_json(atomic_files.read_json(results_path))
        return creation.finish(plan, output_dir, tokenizer, merged)
    except RuntimeError as error:
        # Beam converts an error on a worker to text in an error of its own.
        if UserError.__name__ in str(error):
            raise UserError(_last_line(error)) from error
        raise
    finally:
        creation.clean_up(output_dir)


def _build(pipeline: beam.Pipeline, plan: Plan, vocab_size: int, results_path: str) -> None:
    # The list of files may exceed the size limit of a pipeline, so workers read it from a file.
    files_path = os.path.join(plan.job.folder, f"files-{plan.fingerprint}.json")
    atomic_files.write_json(files_path, list(zip(plan.files, plan.sizes)))
    # Workers exchange little data: numbers of groups, places of documents and sums, but no text.
    reading = (files_path, plan.job, plan.block_bytes)
    groups = (
        pipeline
        | "Number of groups" >> beam.Create([len(plan.groups)])
        | "Groups of files" >> beam.FlatMap(_numbers)
        | "Spread groups" >> beam.Reshuffle()  # Prevents fusion: one worker would do all.
    )
    if plan.job.corpus.deduplicate:
        firsts = (
            groups
            | "Digests" >> beam.FlatMap(_places, *reading)
            | "First of each text" >> beam.CombinePerKey(min)
            | "Places" >> beam.Values()
            | "By group" >> beam.Map(lambda place: (place.group, place))
        )
        # The key includes groups without any first document, so that their problems are counted.
        results = (
            {"group": groups | "Key" >> beam.Map(lambda group: (group, None)), "first": firsts}
            | "Join" >> beam.CoGroupByKey()
            | "Records" >> beam.FlatMap(_make_firsts, *reading)
        )
    else:
        results = groups | "Records" >> beam.FlatMap(_make_all, *reading)
    _ = (
        results
        | "Merge" >> beam.CombineGlobally(_Merge(vocab_size))
        | "Note" >> beam.Map(lambda merged: atomic_files.write_json(results_path, merged, None))
    )


def _last_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if UserError.__name__ in line]
    return lines[-1].partition(f"{UserError.__name__}: ")[2] or str(error)
