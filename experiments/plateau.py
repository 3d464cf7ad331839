"""Compares ideas for leaving the plateau of ALBERT's pre-training, one run each, in equal time.

    python -m experiments.plateau --train_data=records/train --short_train_data=records/train_32 \
        --eval_data=records/heldout

Every trial is one or two commands of run_pretraining, with the architecture of `albert-small`
(docs/training.md, "The plateau"). Results in --work_dir are reused, so that cores can share the
trials: run `taskset -c 0` with some of --trials, `taskset -c 1` with others once the folder
`starts` exists, and finally all of them for the table.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from matplotlib.figure import Figure

from albert_tf.checkpoints import native, vocabulary
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertPretrainer
from albert_tf.starting_weights.informed import position_size
from albert_tf.training.report.metrics_file import METRICS_FILE, read_metrics
from benchmarks.tables import chosen, print_rows, write_csv
from data_pipeline.command_line import flags, run_binary
from experiments.programs import run_program

FLAGS = flags.FLAGS
Curve: TypeAlias = list[dict[str, float]]  # One entry per evaluation.
INFORMED = "informed"  # The weights from make_starting_weights.
_EVALUATIONS = 8  # Per trial, divided among its stages.
_SHORT, _LONG = 32, 128  # Tokens in a sequence.
_COLORS = 7  # Further lines repeat the colors, dashed.
_FIGURES = ("masked_lm_loss", "masked_lm_accuracy")


@dataclasses.dataclass(frozen=True)
class Stage:
    """A run of run_pretraining.

    Attributes:
      steps: number of updates.
      batch: sequences in a batch.
      layers: number of layers of the model.
      length: tokens in a sequence.
      warmup: number of warm-up updates.
      decays: whether the learning rate decays to 0 at the end of the stage.
    """

    steps: int
    batch: int = 64
    layers: int = 4
    length: int = _LONG
    warmup: int = 100
    decays: bool = True

    @property
    def tokens(self) -> int:
        """The number of tokens in an update."""
        return self.batch * self.length


@dataclasses.dataclass(frozen=True)
class Trial:
    """An idea to try.

    Attributes:
      name: its name in --trials and of its folders.
      text: its description in the table.
      start: starting weights, INFORMED or one of PARTS; "" for random ones.
      stages: its stages, in order.
      extra: additional flags of run_pretraining.
    """

    name: str
    text: str
    start: str = ""
    stages: tuple[Stage, ...] = (Stage(800),)
    extra: tuple[str, ...] = ()


def _two_stages(steps: int, **changed: int) -> tuple[Stage, Stage]:
    """A first stage at the constant full rate for about half of the time, then half as many updates
    as one-stage trials have.
    """
    return Stage(steps, decays=False, **changed), Stage(400, warmup=50)


TRIALS = [
    Trial("random", "random weights"),
    Trial("constant", "constant rate first", stages=_two_stages(400)),
    Trial("beta_2", "a beta_2 of 0.98", extra=("--beta_2=0.98",)),
    Trial("projection", "a larger projection", "projection"),
    Trial("batches", "batches of 16 first", stages=_two_stages(1600, batch=16)),
    Trial("short", "32 tokens first", stages=_two_stages(1600, length=_SHORT)),
    Trial("depth", "one layer first", stages=_two_stages(1300, layers=1)),
    Trial("words", "word vectors", "words"),
    Trial("positions", "positions and heads", "positions"),
    Trial("both", "both, of make_starting_weights", INFORMED),
    Trial("both_constant", "both, constant rate first", INFORMED, _two_stages(400)),
    Trial("both_batches", "both, batches of 16 first", INFORMED, _two_stages(1600, batch=16)),
]


def define_flags() -> None:
    """Flags of this program."""
    flags.group("What is measured")
    flags.DEFINE_string("train_data", None, "Training records of 128 tokens.", required=True)
    flags.DEFINE_string(
        "short_train_data",
        None,
        "Folder of records of the same text, 32 tokens long.",
        required=True,
    )
    flags.DEFINE_string("eval_data", None, "Held-out records of 128 tokens.", required=True)
    flags.DEFINE_string("trials", "", "Regular expression for names of trials, such as ^random$.")
    flags.group("Output")
    flags.DEFINE_string("work_dir", "benchmark_out/plateau", "Folder of starting weights and runs.")
    flags.DEFINE_string("curves", None, "CSV file for every evaluation.")
    flags.DEFINE_string("picture", None, "PNG file for the curves.")


def main() -> None:
    trials = chosen("trials", FLAGS.trials, {trial.name: trial for trial in TRIALS})
    work = Path(FLAGS.work_dir)
    if not (work / "starts").exists():
        write_starts(work / "starts")
    curves = {trial.text: train(trial, work) for trial in trials.values()}
    print_rows([{"trial": text, **quarters(curve)} for text, curve in curves.items()])
    if FLAGS.curves:
        points = [{"trial": text, **point} for text, curve in curves.items() for point in curve]
        write_csv(Path(FLAGS.curves), points)
    if FLAGS.picture:
        plot(curves, Path(FLAGS.picture))


def write_starts(folder: Path) -> None:
    """Writes a folder with one model folder for each start that a trial names."""
    new = folder.with_name(f"{folder.name}.new")  # Renamed when it is complete.
    run_program(
        "albert_tf.make_starting_weights",
        *("--preset=albert-small", f"--train_data={FLAGS.train_data}"),
        *(f"--output_dir={new / INFORMED}", "--overwrite"),
    )
    write_parts(new / INFORMED)
    new.rename(folder)


def write_parts(informed: Path) -> None:
    """Writes the model folders of PARTS next to the one of make_starting_weights; each has random
    weights with one change.
    """
    whole = native.load_model(str(informed))
    metadata = native.read_metadata(str(informed))
    tokenizer = json.loads((informed / vocabulary.SETTINGS).read_text())
    for name, change in PARTS.items():
        keras.utils.set_random_seed(0)
        model = AlbertPretrainer(whole.config)
        change(model, whole)
        vocab_file = native.vocabulary_file(str(informed))
        native.save(model, str(informed.with_name(name)), metadata, vocab_file, tokenizer)


def take_words(model: AlbertPretrainer, whole: AlbertPretrainer) -> None:
    """Takes the word vectors, but leaves positions and heads random."""
    ours, theirs = model.encoder.embeddings, whole.encoder.embeddings
    size = position_size(whole.config.embedding_size, whole.config.head_size)
    table = theirs.word_embeddings.numpy()  # [V, E]
    table[:, -size:] = ours.word_embeddings.numpy()[:, -size:]
    ours.word_embeddings.assign(table)
    _take_rest(model, whole)


def take_positions(model: AlbertPretrainer, whole: AlbertPretrainer) -> None:
    """Takes the positions and the attention heads that read them, but leaves words random."""
    ours, theirs = model.encoder.embeddings, whole.encoder.embeddings
    size = position_size(whole.config.embedding_size, whole.config.head_size)
    table = ours.word_embeddings.numpy()  # [V, E]
    table[:, -size:] = 0
    ours.word_embeddings.assign(table)
    ours.position_embeddings.assign(theirs.position_embeddings)
    blocks = (each.encoder.transformer.attention_blocks for each in (model, whole))
    for block, other in zip(*blocks):
        block.query.kernel.assign(other.query.kernel)
        block.key.kernel.assign(other.key.kernel)
    _take_rest(model, whole)


def _take_rest(model: AlbertPretrainer, whole: AlbertPretrainer) -> None:
    """Takes what both parts need: the projection, which separates them, and word frequencies."""
    _projection(model).kernel.assign(_projection(whole).kernel)
    model.masked_lm.output_bias.assign(whole.masked_lm.output_bias)


def _projection(model: AlbertPretrainer) -> keras.layers.Dense:
    projection = model.encoder.embeddings.projection
    assert projection  # The trials' architecture has E < H.
    return projection


def enlarge_projection(model: AlbertPretrainer, whole: AlbertPretrainer) -> None:
    """Scales the random projection so that its outputs have variance 1, like its inputs."""
    kernel = _projection(model).kernel
    kernel.assign(kernel / (np.std(kernel.numpy()) * np.sqrt(whole.config.embedding_size)))


PARTS = {"words": take_words, "positions": take_positions, "projection": enlarge_projection}


def train(trial: Trial, work: Path) -> Curve:
    """Runs the stages that are missing in --work_dir; returns the trial's curve."""
    init = work / "starts" / trial.start if trial.start else None
    config = native.read_config(str(work / "starts" / INFORMED))
    folders = []
    for number, stage in enumerate(trial.stages, 1):
        folder = work / f"{trial.name}_{number}"
        if not (folder / "model").exists():
            config_file = work / f"{trial.name}_{number}.json"
            config.replace(num_hidden_layers=stage.layers).to_json_file(str(config_file))
            command = [f"--config_file={config_file}", f"--output_dir={folder}", *flags_of(stage)]
            command += [f"--init_checkpoint={init}"] if init else []
            command.append(f"--eval_steps={stage.steps * len(trial.stages) // _EVALUATIONS}")
            run_program("albert_tf.run_pretraining", *command, *trial.extra)
        folders.append(folder)
        init = folder / "model"
    return curve(trial.stages, folders)


def flags_of(stage: Stage) -> list[str]:
    """Flags of run_pretraining."""
    data = FLAGS.short_train_data if stage.length == _SHORT else FLAGS.train_data
    constant = [] if stage.decays else ["--schedule=wsd", "--decay_share=0"]
    return [
        *(f"--train_data={data}", f"--eval_data={FLAGS.eval_data}"),
        *(f"--train_batch_size={stage.batch}", "--precision=mixed_bfloat16"),
        *("--optimizer=adamw", "--bias_correction", "--learning_rate=0.001"),
        *(f"--num_train_steps={stage.steps}", f"--num_warmup_steps={stage.warmup}", *constant),
        "--steps_per_loop=20",
    ]


def curve(stages: Sequence[Stage], folders: Sequence[Path]) -> Curve:
    """The evaluations of a trial's runs, with the minutes that its updates took (tokens divided by
    the median tokens per second, without evaluations and the start of the programs).
    """
    points: Curve = []
    tokens, minutes = 0, 0.0  # Totals of the stages before.
    for number, (stage, folder) in enumerate(zip(stages, folders), 1):
        rows = read_metrics(str(folder / METRICS_FILE))
        speed = statistics.median(
            float(row["tokens_per_second"]) for row in rows if row["split"] == "train"
        )
        for row in rows:
            if row["split"] == "eval":
                seen = int(row["step"]) * stage.tokens
                points.append(
                    {
                        "stage": number,
                        "update": int(row["step"]),
                        "tokens": tokens + seen,
                        "minutes": round(minutes + seen / speed / 60, 2),
                        **{name: float(row[name]) for name in _FIGURES},
                    }
                )
        tokens += stage.steps * stage.tokens
        minutes += stage.steps * stage.tokens / speed / 60
    return points


def quarters(points: Curve) -> dict[str, str]:
    """The row of a trial: the losses of the evaluations closest to each quarter of its time."""
    last = points[-1]
    row = {"minutes": f"{last['minutes']:.1f}", "tokens": f"{last['tokens'] / 1e6:.1f} million"}
    for quarter in (0.25, 0.5, 0.75, 1):
        wanted = quarter * last["minutes"]
        near = min(points, key=lambda point: abs(point["minutes"] - wanted))
        row[f"after {quarter:.0%}"] = f"{near['masked_lm_loss']:.2f}"
    return {**row, "accuracy": f"{last['masked_lm_accuracy']:.1%}"}


def plot(curves: dict[str, Curve], path: Path) -> None:
    """Plots the losses against the minutes."""
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    for number, (name, points) in enumerate(curves.items()):
        line = [[point[key] for point in points] for key in ("minutes", "masked_lm_loss")]
        style = "s--" if number >= _COLORS else "o-"
        axes.plot(
            *line, style, color=f"C{number % _COLORS}", label=name, linewidth=1.2, markersize=3
        )
    axes.set_xlabel("minutes of training")
    axes.set_ylabel("held-out loss of masked words (nats)")
    axes.grid(alpha=0.3)
    figure.legend(fontsize=8, loc="outside right upper")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    define_flags()
    run_binary(main)
