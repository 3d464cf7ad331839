"""The same records by Apache Beam, on one machine or on a cluster.

Groups of files are read in parallel, and their blocks made into records by whichever worker is
free. The bytes are those that `pretraining_data.create_pretraining_data` writes. All workers must
reach the corpus, the vocabulary and the output folder by the same paths (gs://, or a shared disk).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from data_pipeline import block_records, documents, pretraining_data, records, storage, text_blocks
from data_pipeline.block_records import BlockResult
from data_pipeline.errors import UserError
from data_pipeline.pretraining_data import Plan
from data_pipeline.text_blocks import TextBlock


def _read(numbered: tuple[int, Sequence[str]], plan: Plan) -> Iterator[TextBlock]:
    group, files = numbered
    corpus = plan.job.corpus
    return text_blocks.read_blocks(
        group, files, plan.block_bytes, corpus.input_format, corpus.text_field
    )


def _digests(block: TextBlock, plan: Plan) -> Iterator[tuple[int, tuple[str, int]]]:
    """(digest, (block, number)) of each document."""
    for number, digest in enumerate(documents.document_digests(block, plan.job.corpus)):
        yield digest, (block.name, number)


def _later_ones(_, places: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """All places of a text but the first."""
    return iter(sorted(places)[1:])


def _with_dropped(_, joined: dict[str, Iterable[Any]]) -> Iterator[tuple[TextBlock, list[int]]]:
    for block in joined["block"]:
        yield block, sorted(joined["dropped"])


def _deduplicated(blocks: beam.PCollection, plan: Plan) -> beam.PCollection:
    """Blocks with the numbers of their documents that occurred before."""
    dropped = (
        blocks
        | "Digests" >> beam.FlatMap(_digests, plan)
        | "By text" >> beam.GroupByKey()
        | "Later ones" >> beam.FlatMapTuple(_later_ones)
    )
    named = blocks | "By name" >> beam.Map(lambda block: (block.name, block))
    return (
        {"block": named, "dropped": dropped}
        | "Join" >> beam.CoGroupByKey()
        | "With duplicates" >> beam.FlatMapTuple(_with_dropped)
    )


def _process(element: tuple[TextBlock, Sequence[int]], plan: Plan) -> dict[str, Any]:
    block, dropped = element
    return block_records.process_block(block, dropped, plan.job).to_json()


def _finish(results: Iterable[dict[str, Any]], plan: Plan, output_dir: str) -> dict[str, Any]:
    found = [BlockResult.from_json(result) for result in results]
    return pretraining_data.finish(plan, output_dir, plan.job.load_tokenizer(), found)


def create_pretraining_data(
    plan: Plan,
    output_dir: str,
    *,
    options: Sequence[str] = (),
    overwrite: bool = False,
) -> dict[str, Any]:
    """Runs the plan as a Beam pipeline; returns the manifest.

    Args:
      plan: see `pretraining_data.make_plan`.
      output_dir: folder to write.
      options: of the pipeline, such as "--runner=FlinkRunner".
      overwrite: replace finished data in `output_dir`.

    Raises:
      UserError: an output folder with data, or no record could be made.
    """
    try:
        pipeline = beam.Pipeline(options=PipelineOptions(list(options)))
    except ValueError as error:
        raise UserError(f"--runner, --pipeline_option: {error}") from None
    is_new = not storage.exists(output_dir)
    manifest = pretraining_data.prepare(plan, output_dir, overwrite)
    if manifest:
        return manifest
    try:
        with pipeline:
            _build(pipeline, plan, output_dir)
    except RuntimeError as error:
        # Beam wraps what happened on a worker in an error of its own.
        if UserError.__name__ in str(error):
            raise UserError(_last_line(error)) from error
        raise
    finally:
        pretraining_data.clean_up(output_dir, is_new)
    return records.read_manifest(output_dir)


def _build(pipeline: beam.Pipeline, plan: Plan, output_dir: str) -> None:
    groups = list(enumerate(text_blocks.group_files(plan.files, plan.block_bytes)))
    blocks = (
        pipeline
        | "Groups of files" >> beam.Create(groups)
        | "Spread groups" >> beam.Reshuffle()
        | "Read" >> beam.FlatMap(_read, plan)
    )
    if plan.job.corpus.deduplicate:
        blocks = _deduplicated(blocks, plan)
    else:
        blocks = blocks | "Nothing dropped" >> beam.Map(lambda block: (block, []))
    _ = (
        blocks
        | "Spread blocks" >> beam.Reshuffle()
        | "Records" >> beam.Map(_process, plan)
        | "Collect" >> beam.combiners.ToList()
        | "Publish" >> beam.Map(_finish, plan, output_dir)
    )


def _last_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if UserError.__name__ in line]
    return lines[-1].partition(f"{UserError.__name__}: ")[2] or str(error)
