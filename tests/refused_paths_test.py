"""Paths that cannot be read or written, program by program: one sentence, exit code 2."""

from __future__ import annotations

import pytest

# Program -> its flags that name paths, and what else it needs; FILE is a file.
PROGRAMS: dict[str, tuple[list[str], list[str]]] = {
    "data_pipeline.train_vocabulary": (["input", "output_dir"], []),
    "data_pipeline.create_pretraining_data": (["input", "vocab_file", "output_dir"], []),
    "data_pipeline.inspect_records": (["data"], []),
    "data_pipeline.adopt_records": (["data", "vocab_file"], []),
    "albert_tf.convert": (["input", "output"], ["--format=google"]),
    "albert_tf.create_finetuning_data": (
        ["train_file", "vocab_file", "output_dir"],
        ["--task=tsv"],
    ),
    "albert_tf.describe": (["config_file"], []),
    "albert_tf.make_starting_weights": (["train_data", "output_dir"], []),
    "albert_tf.run_ensemble": (["runs", "output_dir"], ["--task=tsv"]),
    "albert_tf.run_finetuning": (["data_dir", "init_checkpoint", "output_dir"], ["--task=cola"]),
    "albert_tf.run_pretraining": (
        ["train_data", "eval_data", "config_file", "init_checkpoint", "output_dir"],
        ["--train_batch_size=4"],
    ),
    "albert_tf.verify": (["model"], []),
    "albert_tf.write_glue_submission": (["runs", "output"], []),
    "export.run_export": (["model_dir", "output_dir"], ["--task=encoder"]),
    "export.run_litert": (["model_dir", "output_dir"], ["--task=encoder"]),
}
IO = "needs tensorflow-io, which the programs do not load. Copy or mount it to a disk"
VALUES = {
    "s3://bucket/x": f"TensorFlow alone does not support s3://. s3:// {IO}",
    "hdfs://host/x": f"hdfs:// {IO}",
    "foo://x/y": "TensorFlow alone does not support foo://. Name a path on a disk, or gs://.",
    "ftp://host/x": "support ftp://. Download the files to a disk, and name their path",
    "http://127.0.0.1:9/x": "Download the files to a disk, and name their path",
    "FILE/sub": "FILE is a file, so no path can be under it. Name another path.",
}


def refusals() -> list:
    """Each program with each of its flags and another value; in the end all values occur."""
    found, values = [], list(VALUES)
    for module, (names, _) in PROGRAMS.items():
        for name in names:
            value = values[len(found) % len(values)]
            marks = [] if len(found) % 5 == 0 else [pytest.mark.table]
            found.append(pytest.param(module, name, value, marks=marks, id=f"{module}-{name}"))
    return found


@pytest.mark.parametrize(("module", "name", "value"), refusals())
def test_a_path_out_of_reach(result_of, tmp_path, module, name, value):
    file = tmp_path / "file"
    file.write_text("some text\n")
    names, more = PROGRAMS[module]
    given = {other: str(file if other != "output_dir" else tmp_path / "out") for other in names}
    given[name] = value.replace("FILE", str(file))
    arguments = [f"--{other}={path}" for other, path in given.items()]
    result = result_of(module, *arguments, *more)
    assert result.returncode == 2 and "Traceback" not in result.stderr, result.stderr
    message = VALUES[value].replace("FILE", str(file))
    assert f"error: --{name}={given[name]}: " in result.stderr and message in result.stderr
    assert result.stderr.count("\n") == 1 and not (tmp_path / "out").exists()
