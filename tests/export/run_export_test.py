"""The exporter as a user calls it."""

import os


def test_prints_path_signatures_difference_and_what_to_do_next(model_dirs, tmp_path, run_module):
    out = tmp_path / "topics"
    process = run_module(
        "export.run_export",
        f"--model_dir={model_dirs['classifier']}",
        f"--output_dir={out}",
        "--task=classifier",
    )
    assert process.returncode == 0, process.stderr
    assert f"exported {out}/1" in process.stdout
    assert "signature serving_default: text string[?] -> label string[?]" in process.stdout
    assert "largest difference from the Keras model: " in process.stdout
    assert f"next: python -m export.server --model=topics={out}" in process.stdout
    assert os.listdir(out) == ["1"]


def test_a_mistake_is_one_line_and_exit_code_2(run_module, tmp_path):
    out = tmp_path / "out"
    process = run_module(
        "export.run_export", "--model_dir=nowhere", f"--output_dir={out}", "--task=encoder"
    )
    assert process.returncode == 2
    assert "error: nowhere is not a model folder" in process.stderr
    assert "Traceback" not in process.stderr
    assert not out.exists()
