"""A training set of SQuAD 2.0's size is read, cut into windows and trained on in less than 2 GB."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
VOCABULARY = ROOT / "tests" / "goldens" / "wordpiece" / "vocab.txt"
PARAGRAPHS, QUESTIONS = 19_035, 130_319  # Of train-v2.0.json.
WORDS = 117  # Of a context there, on average.


def write(path: Path, paragraphs: int, questions: int) -> None:
    """A file of invented questions about texts of common words."""
    rng = random.Random(0)
    words = [word for word in VOCABULARY.read_text().split() if word.isalpha()]
    entries = []
    for number in range(paragraphs):
        context = rng.choices(words, k=WORDS)
        asked = range(number, questions, paragraphs)
        found = [question(each, context, rng, words) for each in asked]
        entries.append({"context": " ".join(context), "qas": found})
    path.write_text(json.dumps({"version": "v2.0", "data": [{"title": "", "paragraphs": entries}]}))


def question(number: int, context: list[str], rng: random.Random, words: list[str]) -> dict:
    """A question whose answer is a word of the context; every third has none."""
    first = rng.randrange(WORDS)
    answer = {"text": context[first], "answer_start": len(" ".join([*context[:first], ""]))}
    return {
        "id": str(number),
        "question": " ".join(rng.choices(words, k=10)),
        "answers": [] if number % 3 == 0 else [answer],
        "is_impossible": number % 3 == 0,
    }


@pytest.mark.long
def test_the_training_set_of_squad_2_takes_less_than_2_gb(tmp_path):
    if not Path("/proc/self/status").exists():
        pytest.skip("SKIPPED: this system does not list its processes in /proc")
    write(tmp_path / "train.json", PARAGRAPHS, QUESTIONS)
    write(tmp_path / "dev.json", 2, 6)
    command = [
        *(sys.executable, "-m", "albert_tf.run_finetuning", "--task=squad2.0"),
        *(f"--train_file={tmp_path}/train.json", f"--dev_file={tmp_path}/dev.json"),
        *("--preset=albert-tiny", f"--vocab_file={VOCABULARY}", "--max_seq_length=384"),
        *("--num_train_steps=1", "--train_batch_size=8", f"--output_dir={tmp_path}/run"),
    ]
    program, peak = subprocess.Popen(command, cwd=ROOT), 0
    # Not `ru_maxrss` of `os.wait4`, which counts the memory of this process at the fork as well.
    while program.poll() is None:
        peak = max(peak, peak_bytes(program.pid))
        time.sleep(0.05)
    assert program.returncode == 0
    assert 2e8 < peak < 2e9
    print(f"peak: {peak / 2**20:.0f} MiB")


def peak_bytes(pid: int) -> int:
    """The largest memory of a process so far; 0 once it has ended."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) * 1024 if found else 0
