"""The three programs work one after the other."""

import subprocess
import sys
from pathlib import Path

from data_pipeline import create_pretraining_data, inspect_records, train_vocabulary
from data_pipeline.records import record_folder

ROOT = Path(__file__).parents[2]


def run(program, *arguments, python=sys.executable):
    name = program.__name__ if hasattr(program, "__name__") else program
    return subprocess.run(
        [python, "-m", name, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_text_to_vocabulary_to_records(tmp_path, small_file, quick_python):
    vocab, data = tmp_path / "vocab", tmp_path / "data"
    trained = run(
        train_vocabulary, f"--input={small_file}", f"--output_dir={vocab}", "--vocab_size=500",
        "--nolower_case", "--language=de",
    )  # fmt: skip
    assert trained.returncode == 0, trained.stderr
    assert f"--vocab_file={vocab}/spiece.model --language=de --output_dir=DATA" in trained.stdout
    foreign = tmp_path / "foreign.txt"
    foreign.write_text("日本語 の テキスト\nもう 一つ の 文\n" * 500, encoding="utf-8")
    made = run(
        create_pretraining_data, f"--input={small_file},{foreign}", f"--output_dir={data}",
        f"--vocab_file={vocab}/spiece.model", "--max_seq_length=48", "--dupe_factor=1",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    manifest = record_folder.verify_records(str(data), full=True)
    assert manifest["tokenizer"]["lower"] is False, "taken from tokenizer_settings.json"
    for words in ("documents", "share of <unk>", "share in the records", "mask rate",
                  "swapped pairs", "preset=albert-small"):  # fmt: skip
        assert words in made.stdout
    assert "corpus: 100%" in made.stderr and "of the tokens are <unk>" in made.stderr
    shown = run(inspect_records, f"--data={data}", "--num_records=2", python=quick_python)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.count("  A: [CLS]") == 2 and "[MASK]<" in shown.stdout
