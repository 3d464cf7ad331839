"""Hugging Face's windows of a file of SQuAD, timed: the request names the file's folder."""

import json
import time

import finetuning_data
import finetuning_huggingface
from transformers import AlbertTokenizerFast


def main() -> None:
    case = finetuning_data.request()
    tokenizer = AlbertTokenizerFast(vocab_file=case["vocab_file"])
    start, used = time.perf_counter(), time.process_time()
    data = finetuning_huggingface.Data(case, "train", tokenizer)
    seconds, core_seconds = time.perf_counter() - start, time.process_time() - used
    found = {"questions": len(data.rows), "windows": len(data.features)}
    print(json.dumps({**found, "seconds": seconds, "core seconds": core_seconds}))


if __name__ == "__main__":
    main()
