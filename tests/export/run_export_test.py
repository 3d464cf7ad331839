"""The exporter as a user calls it."""

import os
import shlex
import shutil

from albert_tf.checkpoints import huggingface
from data_pipeline.command_line import flags
from export import run_export
from export.comparison import Comparison
from export.run_export import export_summary, next_command
from export.saved_model import Exported


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
    assert f"next: python -m export.server --model=topics={out}" in process.stdout
    assert os.listdir(out) == ["1"]


def test_the_report_lists_signatures_and_difference():
    signature = {
        "inputs": {"text": "string[?]"},
        "outputs": {"label": "string[?]", "logits": "float32[?, 3]"},
    }
    comparison = Comparison(
        "int8", 8_000_000, {"tokens.probabilities": 1e-3, "tokens.logits": 0.0123}
    )
    hashes = "a" * 64, "b" * 64
    exported = Exported(
        "/out/topics/3", {"serving_default": signature}, 1.234e-6, 2, *hashes, 2_040_000, comparison
    )
    lines = export_summary("classifier", "/out/topics", exported).splitlines()
    assert lines[:7] == [
        "exported /out/topics/3",
        "  signature serving_default: text string[?] -> label string[?], logits float32[?, 3]",
        "  largest difference from the Keras model: 1.2e-06",
        "  precision int8: 2.04 MB; weights in float32: 8.00 MB",
        "  largest difference from float32: 1.2e-02, of tokens.logits",
        "  accuracy: not measured, for which --eval_file is needed",
        f"  graph {'a' * 16}, weights {'b' * 16}",
    ]
    assert lines[7] == "next: python -m export.server --model=topics=/out/topics"
    assert lines[8].startswith(
        "  or: docker run --rm -p 8500:8500 -p 8501:8501 -v /out/topics:/mod"
    )
    assert lines[8].endswith("-e MODEL_NAME=topics tensorflow/serving:2.20.0")
    assert lines[9].endswith("http://127.0.0.1:8501/v1/models/topics:predict")
    assert '{"instances": ["some text"]}' in lines[9] and len(lines) == 10


def test_each_task_has_its_next_command(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    spaced = next_command("masked_lm", "my out/the words", "my out/the words/1")
    server, docker, _ = spaced.split("\n")
    assert shlex.split(server)[-1] == f"--model=the_words={tmp_path}/my out/the words"
    assert f"{tmp_path}/my out/the words:/models/the_words" in shlex.split(docker)
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


def test_limits(new_flags):
    with new_flags():
        run_export.define_flags()
        found = {
            flag.name: (flag.default, flag.parser.numbers.allowed())
            for flag in flags.defined()
            if isinstance(flag.parser, flags.NumberParser)
        }
    assert found == {
        "version": (None, "an integer from 1 to 2,147,483,647"),
        "max_seq_length": (None, "an integer from 8 to 65,536"),
        "max_accuracy_loss": (None, "a finite number from 0 to 1"),
    }
