"""The program for LiteRT as a user calls it."""

import re

import pytest

pytest.importorskip(
    "ai_edge_litert", reason='SKIPPED: LITERT IS NOT INSTALLED (pip install "albert-tf[litert]")'
)


def test_the_report_lists_signature_and_size(model_dirs, tmp_path, result_of):
    process = result_of(
        "export.run_litert", f"--model_dir={model_dirs['classifier']}", "--task=classifier",
        f"--output_dir={tmp_path}/topics", "--precision=float16",
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    path, signature, size, difference, accuracy = process.stdout.splitlines()
    assert path == f"exported {tmp_path}/topics"
    assert signature.startswith("  signature tokens: input_mask int32[?, ?], ")
    assert " -> label string[?], label_id int32[?], logits float32[?, 3], " in signature
    assert re.fullmatch(r"  precision float16: 0\.\d+ MB; weights in float32: 0\.\d+ MB", size)
    assert re.fullmatch(r"  largest difference from float32: \d\.\de-0\d, of logits", difference)
    assert accuracy == "  accuracy: not measured, which needs --eval_file"
    assert (tmp_path / "topics" / "model.tflite").stat().st_size > 0
