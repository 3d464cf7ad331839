"""Answers of an exported SQuAD model beside those of fine-tuning, on a whole file of questions.

    python -m benchmarks.served_answers --model_dir=runs/squad/model --squad=squad/dev-v1.1.json

Both are commands of their own: run_finetuning --mode=predict, which tokenizes and decodes in
Python, and export.predict, which asks the exported graph. The five best answers are compared with
their probabilities, and of version 2.0 the null scores and which questions are not answered. A
question whose answers differ is a tie where probabilities of fine-tuning's n-best list that differ
by less than 1e-5 are all that is in another order.
"""

from __future__ import annotations

from data_pipeline.command_line import flags, run_binary  # isort: skip  First: quiet TensorFlow.

import dataclasses
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
from export.signatures.question_answering import N_BEST

FLAGS = flags.FLAGS
_TIE = 1e-5
_TASKS = {"span": "squad1.1", "span_v2": "squad2.0"}  # By the kind of the model.


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


@dataclasses.dataclass(frozen=True)
class FineTuningAnswers:
    """What run_finetuning answers.

    Attributes:
      seconds: that the command took.
      best: the n best answers of each question by id, the best first.
      final: the answer to each question by id; "" where it is not answered.
      odds: the null scores by id; none of version 1.1.
    """

    seconds: float
    best: dict[str, list[dict]]
    final: dict[str, str]
    odds: dict[str, float]


def finetuning_answers(task: str, folder: Path) -> FineTuningAnswers:
    """The answers of run_finetuning to the questions of --squad."""
    seconds = run_command(
        *("albert_tf.run_finetuning", "--mode=predict", f"--task={task}"),
        *(f"--predict_file={FLAGS.squad}", f"--init_checkpoint={FLAGS.model_dir}"),
        f"--output_dir={folder / 'run'}",
    )
    written = folder / "run" / "predictions"
    best, final, *odds = (
        json.loads(path.read_text(encoding="utf-8"))
        for name in ("nbest_predictions", "predict_predictions", "null_odds")
        for path in written.glob(f"*{name}.json")
    )
    return FineTuningAnswers(seconds, best, final, odds[0] if odds else {})


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
    with open(answered, encoding="utf-8") as file:
        return seconds, [json.loads(line) for line in file]


def texts_of(row: dict) -> list[str]:
    """The best answers of the exported graph to a question, whether it is refused or not."""
    return row["answers"][: row["num_answers"]]


def best_of(answers: list[dict]) -> list[dict]:
    """As many of fine-tuning's answers as are served; [] where the one answer is that there is no
    candidate."""
    return [] if [each["text"] for each in answers] == [""] else answers[:N_BEST]


def is_tie(best: list[dict], others: list[str]) -> bool:
    """Whether other answers, the best first, are as likely as those of an n-best list are."""
    probabilities = {each["text"]: each["probability"] for each in best}
    return len(best_of(best)) == len(others) and all(
        abs(each["probability"] - probabilities.get(other, -1.0)) < _TIE
        for each, other in zip(best, others)
    )


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Comparison")
    flags.DEFINE_string("model_dir", None, "Fine-tuned model folder.", required=True)
    flags.DEFINE_string("squad", None, "Questions in SQuAD's format, with answers.", required=True)
    flags.DEFINE_integer("batch_size", 32, "Questions that the graph is asked at once.", 1)
    flags.DEFINE_string("output", "benchmark_out", "Folder for served_answers.csv.")


def main() -> None:
    metadata = native.read_metadata(FLAGS.model_dir)
    if metadata["task"] not in _TASKS:
        raise UserError(
            f"--model_dir={FLAGS.model_dir} is a model of {metadata['task']}; expected one of "
            "SQuAD 1.1 or 2.0."
        )
    questions = read_squad(FLAGS.squad).questions
    with tempfile.TemporaryDirectory() as folder:
        tuned = finetuning_answers(_TASKS[metadata["task"]], Path(folder))
        seconds, served = served_answers(Path(folder))
    rows = {question.id: row for question, row in zip(questions, served, strict=True)}
    best = {name: best_of(answers) for name, answers in tuned.best.items()}
    ours = {name: [each["text"] for each in answers] for name, answers in best.items()}
    graph = {name: texts_of(row) for name, row in rows.items()}
    differ = [name for name in rows if graph[name] != ours[name]]
    finals_differ = [name for name in rows if rows[name]["answer"] != tuned.final[name]]
    ties = [name for name in differ if is_tie(tuned.best[name], graph[name])]
    with_answer = [question for question in questions if question.answers]

    def score(answers: dict[str, list[str]]) -> float:
        """Of the best answer to each question that has one."""
        each = [
            max(text_f1("".join(answers[asked.id][:1]), right.text) for right in asked.answers)
            for asked in with_answer
        ]
        return round(100 * sum(each) / len(each), 3)

    odds = [abs(score - rows[name]["null_score"]) for name, score in tuned.odds.items()]
    shares = [
        abs(each["probability"] - served)
        for name, answers in best.items()
        for each, served in zip(answers, rows[name]["probabilities"])
    ]
    row = {
        "questions": len(questions),
        "F1 of those with an answer, fine-tuning": score(ours),
        "exported graph": score(graph),
        "answers that differ": len(differ),
        "of them ties": len(ties),
        "final answers that differ": len(finals_differ),
        "probabilities differ by": f"{max(shares, default=0.0):.1e}",
        "null scores differ by": f"{max(odds):.1e}" if odds else "",
        "seconds, fine-tuning": round(tuned.seconds, 1),
        "seconds, exported graph": round(seconds, 1),
    }
    print_rows([row])
    write_csv(Path(FLAGS.output) / f"served_answers_{_TASKS[metadata['task']]}.csv", [row])
    for name in [name for name in differ if name not in ties][:10]:
        print(f"  {name}: {ours[name]}, exported {graph[name]}")


if __name__ == "__main__":
    define_flags()
    run_binary(main)
