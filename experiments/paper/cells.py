"""Cells of the tables as commands, which are run one after the other."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from albert_tf.analysis.costs import pretraining_flops_per_token
from albert_tf.checkpoints import native
from albert_tf.config import AlbertConfig
from albert_tf.finetuning.runs.results import read_results
from albert_tf.finetuning.tasks.table import get_task
from albert_tf.pretrained.presets import get_preset
from albert_tf.training.report.metrics_file import METRICS_FILE, read_metrics
from data_pipeline.corpus.blocks import match_files
from data_pipeline.errors import UserError
from data_pipeline.settings import Settings, setting
from data_pipeline.tokenizers.loading import load_tokenizer
from experiments.paper.tables import PAPER_FLAGS, SMALL, SMALL_FLAGS, TABLES, Cell, Table
from experiments.programs import run_program, shown

PAIRS = ("nsp", "sop")  # Objectives with sentence pairs.
Command = tuple[str, ...]  # A module and its flags.
# Text and sentence objective of a folder of records. `Lab.text` lists the names of texts.
Data = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Lab(Settings):
    """The settings that all runs of a command share."""

    corpus: str = setting("", "Text files to train on: globs, separated by commas.")
    heldout: str = setting("", "Held-out text files, of other documents.")
    more_corpus: str = setting("", "Text of another domain, for --table=data.")
    more_heldout: str = setting("", "Held-out text of the other domain.")
    vocab_file: str = setting("", "Vocabulary; without one, it is made of --corpus.")
    vocab_size: int = setting(0, "Size of the vocabulary; 0: 8,000, for --shape=paper 30,000.")
    max_seq_length: int = setting(0, "Number of tokens in a sequence; 0: 128, or 512.")
    tokens: float = setting(0.0, "Number of tokens in a run (--tokens=20e6); 0: as the table says.")
    minutes: float = setting(0.0, "Minutes of a run in equal time; 0: as the table says.")
    shape: str = setting(
        "small",
        "Size of the cells. small: for a CPU; paper: the paper's own, whose commands are printed.",
        one_of=("small", "paper"),
    )
    tasks: tuple[str, ...] = setting((), "Tasks to fine-tune every run on, such as sst-2.")
    data_dir: str = setting("", "Folder of the files of --tasks.")
    output_dir: str = setting("paper_out", "Folder of vocabulary, records and runs.")

    def __post_init__(self) -> None:
        super().__post_init__()
        for task in self.tasks:
            get_task(task)
        if self.tasks and not self.data_dir:
            raise UserError("--tasks needs --data_dir, the folder of their files.")

    @property
    def is_small(self) -> bool:
        """Whether the cells are for a CPU."""
        return self.shape == "small"

    @property
    def vocabulary(self) -> Path:
        """The path of the vocabulary, given or to be trained."""
        return Path(self.vocab_file or Path(self.output_dir) / "vocabulary" / "spiece.model")

    @functools.cached_property
    def num_pieces(self) -> int:
        """V of the vocabulary, given or to be trained."""
        if self.vocab_file:
            return load_tokenizer(self.vocab_file).vocab_size
        return self.vocab_size or (8000 if self.is_small else 30_000)

    @property
    def length(self) -> int:
        """S, the number of tokens in a sequence."""
        return self.max_seq_length or (128 if self.is_small else 512)

    def text(self, name: str) -> str:
        """The file patterns of a text: train, both (train and the other domain), heldout, or more
        (the other domain's held-out text).
        """
        more = {"both": self.more_corpus, "more": self.more_heldout}.get(name, "-")
        if not self.corpus or not self.heldout or not more:
            needed = "--more_corpus and --more_heldout" if not more else "--corpus and --heldout"
            raise UserError(f"{needed} are missing: text files to train on, and held-out ones.")
        texts = {"train": self.corpus, "both": f"{self.corpus},{more}", "more": more}
        return texts.get(name, self.heldout)

    def records(self, data: Data) -> Path:
        """The folder of records."""
        return Path(self.output_dir) / "records" / f"{'_'.join(data)}_{self.length}"

    def data_commands(self, needed: list[Data]) -> Iterator[tuple[Path, Command]]:
        """Outputs with the commands that create them: the vocabulary and records."""
        vocabulary = command(
            "data_pipeline.train_vocabulary",
            input=self.text("train"),
            output_dir=self.vocabulary.parent,
            vocab_size=self.num_pieces,
            input_sentence_size=300_000,
        )
        if not self.vocab_file:
            yield self.vocabulary, vocabulary
        for data in dict.fromkeys(needed):
            records = command(
                "data_pipeline.create_pretraining_data",
                input=self.text(data[0]),
                vocab_file=self.vocabulary,
                output_dir=self.records(data),
                max_seq_length=self.length,
                sentence_objective=data[1],
            )
            yield self.records(data) / "manifest.json", records


def command(module: str, **flags: object) -> Command:
    """A program with flags; flags without a value are left out."""
    return (module, *(f"--{name}={value}" for name, value in flags.items() if value != ""))


@functools.cache
def fingerprint(patterns: str) -> str:
    """A hash of the names and sizes of text files, independent of their folder."""
    sizes = [(os.path.basename(path), os.path.getsize(path)) for path in match_files(patterns)]
    return _hash(sizes)


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


@dataclasses.dataclass(frozen=True)
class Run:
    """A cell with a seed, in a lab. Its settings determine its folder, so that equal cells of two
    tables share one run.
    """

    lab: Lab
    table_name: str
    cell: Cell
    seed: int

    @property
    def name(self) -> str:
        """ "depth, 4 layers, seed 1"."""
        return f"{self.table_name}, {self.cell.name}, seed {self.seed}"

    @property
    def table(self) -> Table:
        """The table of its cell."""
        return TABLES[self.table_name]

    @property
    def folder(self) -> Path:
        """The folder with all outputs of the run."""
        return Path(self.lab.output_dir) / "runs" / self.key

    @property
    def model(self) -> Path:
        """The folder of its model, inside that of its pre-training."""
        return self.folder / "run" / native.RUN_MODEL

    @functools.cached_property
    def parent(self) -> Run | None:
        """The run from whose model it starts, or None."""
        cells = self.table.small if self.lab.is_small else self.table.paper
        found = [cell for cell in cells if cell.name == self.cell.start]
        return dataclasses.replace(self, cell=found[0]) if found else None

    def lineage(self) -> list[Run]:
        """The runs on which it builds, the first one first, and itself."""
        return [*(self.parent.lineage() if self.parent else ()), self]

    @property
    def config(self) -> AlbertConfig:
        """The architecture."""
        base = SMALL if self.lab.is_small else get_preset(self.table.base).to_dict()
        return AlbertConfig(**{**base, **self.cell.model, "vocab_size": self.lab.num_pieces})

    @property
    def flags(self) -> dict[str, Any]:
        """Flags of run_pretraining, except those for architecture, data and folders."""
        flags: dict[str, Any] = {**(SMALL_FLAGS if self.lab.is_small else PAPER_FLAGS)}
        if self.lab.is_small:
            tokens = self.lab.tokens or self.table.tokens
            batch = flags["train_batch_size"] * self.lab.length
            flags["num_train_steps"] = max(1, round(tokens / batch / self.cell.cost))
        flags |= {**self.cell.flags, "seed": self.seed}
        if self.lab.minutes and "max_minutes" in flags:
            flags["max_minutes"] = self.lab.minutes
        return flags

    @property
    def flops(self) -> float:
        """The number of operations of its pre-training."""
        sequences = self.flags["num_train_steps"] * self.flags["train_batch_size"]
        predictions = round(0.15 * self.lab.length)
        per_token = pretraining_flops_per_token(self.config, self.lab.length, predictions)
        return sequences * self.lab.length * per_token

    @property
    def data(self) -> list[Data]:
        """Its records: for training, held-out, and then those that only `measure` needs."""
        own = self.cell.objective
        found = [("both" if self.cell.more else "train", own), ("heldout", own)]
        if self.table.has_pairs:
            found += [("train", each) for each in PAIRS]
            found += [("heldout", each) for each in ("none", *PAIRS)]
        if any(cell.more for cell in self.table.small):
            found.append(("more", own))
        return found

    @functools.cached_property
    def settings(self) -> dict[str, str]:
        """All settings that influence the figures, by name."""
        lab, defaults = self.lab, AlbertConfig(vocab_size=1).to_dict()
        of_text = fingerprint if lab.is_small else str  # A script's texts may be elsewhere.
        model = {n: v for n, v in self.config.to_dict().items() if v != defaults[n]}
        return {
            "texts": " ".join(f"{text}:{of_text(lab.text(text))}:{o}" for text, o in self.data),
            "vocabulary": fingerprint(lab.vocab_file) if lab.vocab_file else "made",
            "vocab_size": str(lab.num_pieces),
            "max_seq_length": str(lab.length),
            "start": self.parent.key if self.parent else "starting weights",
            **{name: str(value) for name, value in model.items()},
            **{name: str(value) for name, value in self.flags.items()},
            "tasks": " ".join(lab.tasks),
        }

    @property
    def key(self) -> str:
        """Hash of the settings."""
        return _hash(self.settings)

    def commands(self) -> Iterator[tuple[Path, Command]]:
        """Outputs with the commands that create them, in order."""
        yield from self.lab.data_commands(self.data[:2])
        config = self.folder / "config.json"
        train, heldout, *_ = map(self.lab.records, self.data)
        start = self.parent.model if self.parent else self.folder / "start"
        starting_weights = command(
            "albert_tf.make_starting_weights",
            config_file=config,
            train_data=train,
            output_dir=start,
            seed=self.seed,
            overwrite="true",  # Replaces the output of an interrupted command.
        )
        if self.lab.is_small and not self.parent:
            yield start / "model.json", starting_weights
        pretraining = command(
            "albert_tf.run_pretraining",
            config_file=config,
            init_checkpoint=start if self.lab.is_small or self.parent else "",
            train_data=train,
            eval_data=heldout,
            output_dir=self.model.parent,
            **self.flags,
        )
        yield self.model / "model.json", pretraining
        if self.data[2:]:
            yield from self.lab.data_commands(self.data[2:])
            yield self.folder / "measured.json", self._measure()
        for task in self.lab.tasks:
            yield self.folder / task / "results.json", self._finetune(task)

    def _measure(self) -> Command:
        more = [(text, str(self.lab.records((text, each)))) for text, each in self.data[2:]]
        return command(
            "experiments.paper.measure",
            model=self.model,
            objective=self.cell.objective,
            train_data=",".join(path for text, path in more if text == "train"),
            eval_data=",".join(path for text, path in more if text != "train"),
            output=self.folder / "measured.json",
        )

    def _finetune(self, task: str) -> Command:
        recipe: dict[str, Any] = {"flagfile": f"configs/finetune_{task}.flags"}
        if self.lab.is_small:
            recipe = {"learning_rate": 0.0001, "num_train_epochs": 3, "max_seq_length": 128}
        return command(
            "albert_tf.run_finetuning",
            **recipe,
            task=task,
            data_dir=self.lab.data_dir,
            init_checkpoint=self.model,
            output_dir=self.folder / task,
            seed=self.seed,
        )

    def make(self) -> None:
        """Runs the commands whose outputs are missing, and resumes interrupted ones. Makes the run
        from which it starts first, if its model is missing.
        """
        if self.parent and not self.parent.model.exists():
            self.parent.make()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.config.to_json_file(str(self.folder / "config.json"))
        for made, needed in self.commands():
            if not made.exists():
                run_program(*needed, log=self.folder / "log")

    def figures(self) -> dict[str, float]:
        """The held-out figures of the finished run, and its scores on fine-tuning tasks."""
        rows = read_metrics(str(self.model.parent / METRICS_FILE))
        last = [row for row in rows if row["split"] == "eval"][-1]
        kinds = ("masked_lm_", "sentence_order_", "next_sentence_")
        found = {n: float(value) for n, value in last.items() if n.startswith(kinds) and value}
        if self.data[2:]:
            found |= json.loads((self.folder / "measured.json").read_text(encoding="utf-8"))
        for task in self.lab.tasks:
            for result in read_results(str(self.folder / task)):
                found[f"{task}.{result.split}"] = result.best.metrics[result.key] or 0.0
        return found


def with_parents(runs: list[Run]) -> list[Run]:
    """The runs and those from whose models they start, each once and after its parent."""
    return list({each.key: each for run in runs for each in run.lineage()}.values())


def script(runs: list[Run]) -> Iterator[str]:
    """Lines of a shell script for runs: configurations, commands, and the paper's figures."""
    made: set[Path] = set()
    for run in runs:
        needed = dict(run.commands())
        config = shlex.quote(str(run.folder / "config.json"))
        printed = f"; in the paper: {', '.join(map(str, run.cell.paper))}" if run.cell.paper else ""
        printed += f", beside {run.cell.against}" if run.cell.against else ""
        yield f"\n# {run.name}{printed}\nmkdir -p {shlex.quote(str(run.folder))}"
        yield f"echo '{json.dumps(run.config.to_dict())}' > {config}"
        yield from (shown(*each) for path, each in needed.items() if path not in made)
        made |= needed.keys()
