"""Answers of an exported SQuAD model beside those of fine-tuning, on a whole file of questions.

    python -m benchmarks.served_answers --model_dir=runs/squad/model --squad=squad/dev-v1.1.json

Both are commands of their own: run_finetuning --mode=predict, which tokenizes and decodes in
Python, and export.predict, which asks the exported graph. A question whose answers differ is a tie
where the two answers' probabilities in fine-tuning's n-best list differ by less than 1e-5.
"""

from __future__ import annotations

from data_pipeline.command_line import flags, run_binary  # isort: skip  First: quiet TensorFlow.

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from albert_tf.checkpoints import native
from benchmarks.processes import environment_variables
from benchmarks.tables import print_rows, write_csv
from benchmarks.workers.finetuning_data import text_f1
from data_pipeline.errors import UserError
from data_pipeline.finetuning.squad_files import read_squad

FLAGS = flags.FLAGS
_TIE = 1e-5


def run_command(*command: str) -> float:
    """Seconds of a program of this project.

    Raises:
      UserError: it failed, with its messages.
    """
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", *command],
        env={**environment_variables(), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise UserError(f"{command[0]} failed:\n{done.stderr}")
    return time.perf_counter() - start


def finetuning_answers(task: str, folder: Path) -> tuple[float, dict[str, list[dict]]]:
    """Seconds, and by id the n best answers of run_finetuning, the best first."""
    seconds = run_command(
        *("albert_tf.run_finetuning", "--mode=predict", f"--task={task}"),
        *(f"--predict_file={FLAGS.squad}", f"--init_checkpoint={FLAGS.model_dir}"),
        f"--output_dir={folder / 'run'}",
    )
    (path,) = (folder / "run" / "predictions").glob("*nbest_predictions.json")
    return seconds, json.loads(path.read_text(encoding="utf-8"))


def served_answers(folder: Path) -> tuple[float, list[dict]]:
    """Seconds, and the answers of the exported graph in the order of the questions."""
    models = folder / "models"
    export = ("export.run_export", "--task=question_answering", f"--model_dir={FLAGS.model_dir}")
    run_command(*export, f"--output_dir={models}")
    examples = read_squad(FLAGS.squad)
    asked, answered = folder / "asked.jsonl", folder / "answered.jsonl"
    with open(asked, "w", encoding="utf-8") as file:
        for question in examples.questions:
            row = {"question": question.text, "context": examples.contexts[question.context]}
            file.write(json.dumps(row) + "\n")
    seconds = run_command(
        *("export.predict", f"--model={models}", f"--input_file={asked}"),
        *(f"--output_file={answered}", f"--batch_size={FLAGS.batch_size}"),
    )
    return seconds, [json.loads(line) for line in answered.read_text("utf-8").splitlines()]


def is_tie(best: list[dict], other: str) -> bool:
    """Whether an answer in an n-best list is as likely as the first one."""
    found = [each["probability"] for each in best if each["text"] == other]
    return bool(found) and best[0]["probability"] - found[0] < _TIE


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Comparison")
    flags.DEFINE_string("model_dir", None, "Fine-tuned model folder.", required=True)
    flags.DEFINE_string("squad", None, "Questions in SQuAD's format, with answers.", required=True)
    flags.DEFINE_integer("batch_size", 32, "Questions that the graph is asked at once.", 1)
    flags.DEFINE_string("output", "benchmark_out", "Folder for served_answers.csv.")


def main() -> None:
    metadata = native.read_metadata(FLAGS.model_dir)
    if metadata["task"] != "span":
        raise UserError(
            f"--model_dir={FLAGS.model_dir} is a model of {metadata['task']}; expected one of "
            "SQuAD 1.1."
        )
    questions = read_squad(FLAGS.squad).questions
    with tempfile.TemporaryDirectory() as folder:
        seconds, best = finetuning_answers("squad1.1", Path(folder))
        served_seconds, served = served_answers(Path(folder))
    ours = {question.id: best[question.id][0]["text"] for question in questions}
    graph = {question.id: row["answer"] for question, row in zip(questions, served, strict=True)}
    differ = [name for name in ours if ours[name] != graph[name]]
    ties = [name for name in differ if is_tie(best[name], graph[name])]

    def score(answers: dict[str, str]) -> float:
        each = [
            max(text_f1(answers[question.id], answer.text) for answer in question.answers)
            for question in questions
        ]
        return round(100 * sum(each) / len(each), 3)

    rows = [
        {"path": path, "questions": len(answers), "F1": score(answers), "seconds": round(taken, 1)}
        for path, answers, taken in (
            ("fine-tuning", ours, seconds),
            ("exported graph", graph, served_seconds),
        )
    ]
    print_rows(rows)
    write_csv(Path(FLAGS.output) / "served_answers.csv", rows)
    print(f"{len(differ)} answers differ, {len(ties)} of them ties within {_TIE}.")
    for name in [name for name in differ if name not in ties][:10]:
        print(f"  {name}: {ours[name]!r}, exported {graph[name]!r}")


if __name__ == "__main__":
    define_flags()
    run_binary(main)
