"""Converts text to ids or records once, in one of several ways; prints seconds and peak memory.

Time is measured from after loading the program and the vocabulary until the files are written.

    PYTHONPATH=. python benchmarks/workers/records.py KIND TEXT VOCABULARY OUTPUT [name=value ...]
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

LENGTH, PREDICTIONS = 512, 77


def sentencepiece_ids(text: str, vocabulary: str, output: str) -> Callable[[], object]:
    """SentencePiece in one thread, on sentences that are already normalized and in memory."""
    import sentencepiece

    from data_pipeline.tokenizers.normalization import normalize_many

    processor = sentencepiece.SentencePieceProcessor(model_file=vocabulary)
    lines = normalize_many(Path(text).read_text(encoding="utf-8").split("\n"))
    return lambda: processor.encode(lines, num_threads=1)


def our_records(text: str, vocabulary: str, output: str, **settings: str) -> Callable[[], object]:
    """This project's records."""
    from data_pipeline.corpus.documents import Corpus
    from data_pipeline.pretraining.creation import create_pretraining_data
    from data_pipeline.pretraining.settings import PretrainingSettings
    from data_pipeline.tokenizers.fast.encoder import fast_encoder
    from data_pipeline.tokenizers.loading import load_tokenizer

    tokenizer = load_tokenizer(vocabulary)
    fast_encoder(tokenizer)(["a"])
    num_processes = int(settings.pop("num_processes", 1))
    settings = PretrainingSettings(
        max_seq_length=LENGTH,
        max_predictions_per_seq=PREDICTIONS,
        dupe_factor=int(settings.pop("dupe_factor", 1)),
        **settings,
    )
    return lambda: create_pretraining_data(
        Corpus(text), output, tokenizer, settings, num_processes=num_processes
    )


def dataset_records(text: str, vocabulary: str, output: str, masking: str) -> Callable[[], object]:
    """This project's records through a tf.data.Dataset."""
    import tensorflow as tf

    from data_pipeline.pretraining.settings import PretrainingSettings
    from data_pipeline.pretraining.without_records.dataset import pretraining_examples
    from data_pipeline.pretraining.writer import write_records
    from data_pipeline.tokenizers.loading import load_tokenizer

    tokenizer = load_tokenizer(vocabulary)
    settings = PretrainingSettings(
        max_seq_length=LENGTH, max_predictions_per_seq=PREDICTIONS, dupe_factor=1, masking=masking
    )
    documents = Path(text).read_bytes().split(b"\n\n")
    dataset = tf.data.Dataset.from_tensor_slices(documents)

    def run() -> None:
        examples = pretraining_examples(dataset, tokenizer, settings)
        write_records(examples, output, tokenizer, settings)

    return run


def model_garden_records(text: str, vocabulary: str, output: str) -> Callable[[], object]:
    """The Model Garden's program, which supports only a WordPiece vocabulary."""
    Path(output).mkdir()
    command = [
        sys.executable, "-m", "official.nlp.data.create_pretraining_data", f"--input_file={text}",
        f"--output_file={output}/records.tfrecord", f"--vocab_file={vocabulary}",
        f"--max_seq_length={LENGTH}", f"--max_predictions_per_seq={PREDICTIONS}",
        "--dupe_factor=1", "--do_whole_word_mask", "--max_ngram_size=3",
    ]  # fmt: skip
    return lambda: subprocess.run(command, check=True)


KINDS = {
    "sentencepiece": sentencepiece_ids,
    "ours": our_records,
    "dataset": dataset_records,
    "garden": model_garden_records,
}


def main() -> None:
    kind, text, vocabulary, output, *options = sys.argv[1:]
    run = KINDS[kind](text, vocabulary, output, **dict(option.split("=") for option in options))
    start = time.perf_counter()
    run()
    seconds = time.perf_counter() - start
    who = resource.RUSAGE_CHILDREN if kind == "garden" else resource.RUSAGE_SELF
    print(json.dumps({"seconds": seconds, "peak_mb": resource.getrusage(who).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
