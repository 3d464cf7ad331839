"""The exporter as a user calls it."""

import os
import re
import shlex
import shutil

from albert_tf.checkpoints import huggingface
from export.run_export import next_command


def test_prints_path_signatures_difference_and_what_to_do_next(
    keras_models, vocabulary_dir, tmp_path, result_of
):
    """The model is of Hugging Face's library: its classes have the names of its config.json."""
    theirs, ours, out = (tmp_path / name for name in ("theirs", "ours", "topics"))
    huggingface.save(keras_models["classifier"], str(theirs), ["no", "maybe", "yes"])
    shutil.copytree(vocabulary_dir, theirs, dirs_exist_ok=True)
    converted = result_of(
        "albert_tf.convert", f"--input={theirs}", f"--output={ours}", "--format=native"
    )
    assert converted.returncode == 0, converted.stderr
    process = result_of(
        "export.run_export", f"--model_dir={ours}", f"--output_dir={out}", "--task=classifier",
        "--inputs=tokens",
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    assert f"exported {out}/1" in process.stdout
    assert next(out.rglob("labels.txt")).read_text() == "no\nmaybe\nyes\n"
    assert "signature serving_default: input_mask int32[?, ?], input_type_ids" in process.stdout
    assert "-> label string[?], label_id int32[?], logits float32[?, 3]" in process.stdout
    assert "largest difference from the Keras model: " in process.stdout
    assert "\n  precision float32: " in process.stdout
    assert re.search(r"\n  graph [0-9a-f]{16}, weights [0-9a-f]{16}\n", process.stdout)
    assert f"next: python -m export.server --model=topics={out}" in process.stdout
    assert os.listdir(out) == ["1"]


def test_each_task_has_its_next_command(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    spaced = next_command("masked_lm", "my out/the words", "my out/the words/1")
    server, docker, _ = spaced.split("\n")
    assert shlex.split(server)[-1] == f"--model=the_words={tmp_path}/my out/the words"
    assert f"{tmp_path}/my out/the words:/models/the_words" in shlex.split(docker)
    assert docker.endswith("-e MODEL_NAME=the_words tensorflow/serving:2.20.0")
    remote = next_command("masked_lm", "gs://bucket/words/", "gs://bucket/words/1")
    assert remote.startswith("python -m export.server --model=words=gs://bucket/words\n")
    masked = next_command("masked_lm", "out/words", "out/words/1")
    assert f"--model=words={tmp_path}/out/words\n" in masked and "some [MASK] text" in masked
    asked = next_command("question_answering", "out/q", "out/q/1")
    assert '{"instances": [{"question": "Who?", "context": "Ann did."}]}' in asked
    encoder = next_command("encoder", "out/e", "out/e/1")
    assert encoder == "python -c \"import tensorflow_hub as hub; print(hub.load('out/e/1'))\""
    preprocessor = next_command("preprocessor", "out/p", "out/p/1")
    assert "tensorflow_text" in preprocessor
    assert "hub.load('out/p/1')(['some text'])" in preprocessor
