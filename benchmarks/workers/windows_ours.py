"""This project's windows of a file of SQuAD, timed: the request names the file's folder."""

import json
import time
from pathlib import Path

import finetuning_data

from data_pipeline.finetuning.squad_files import read_squad
from data_pipeline.finetuning.squad_windows import WindowSettings, make_windows
from data_pipeline.tokenizers.loading import load_tokenizer


def main() -> None:
    case = finetuning_data.request()
    tokenizer = load_tokenizer(case["vocab_file"])
    start, used = time.perf_counter(), time.process_time()
    examples = read_squad(str(Path(case["data_dir"]) / "train-v1.1.json"), training=True)
    settings = WindowSettings(case["max_seq_length"])
    windows = make_windows(examples, tokenizer, settings, training=True)
    seconds, core_seconds = time.perf_counter() - start, time.process_time() - used
    found = {"questions": len(examples.questions), "windows": len(windows)}
    print(json.dumps({**found, "seconds": seconds, "core seconds": core_seconds}))


if __name__ == "__main__":
    main()
