"""The tables of the paper. A table is a list of cells; a cell holds what is specific to its row.

Each table has two lists: `small`, which two CPU cores can train, and `paper`, the original. All
cells of a list share a base (SMALL, or the table's preset), and each is compared with the row named
by `against`. Figures are from the ICLR version.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from albert_tf.pretrained.presets import get_preset

LOSS, BETTER, WORSE, SAME = "masked_lm_loss", "better", "worse", "same"


@dataclasses.dataclass(frozen=True)
class Cell:
    """A row of a table.

    Attributes:
      name: name of the row.
      model: fields of AlbertConfig that differ from the table's base.
      against: name of the row to compare with; "": none.
      paper: for each figure of the table, the paper's value for this row, or whether the row is
        BETTER, WORSE or the SAME in the paper, compared with `against`.
      flags: flags of run_pretraining, which override those of the shape.
      start: name of the row from whose model it starts; "": starting weights of its own.
      objective: objective of the sentence pairs.
      more: whether it also reads --more_corpus.
      cost: time of an update, relative to the other rows; the number of updates is divided by it.
    """

    name: str
    model: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    against: str = ""
    paper: tuple[float | str, ...] = ()
    flags: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    start: str = ""
    objective: str = "sop"
    more: bool = False
    cost: float = 1


@dataclasses.dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
      title: its number and subject.
      small, paper: its cells.
      base: the preset that the paper's cells modify.
      printed: the kind of figures that the paper gives.
      figures: the figures to compare; for a loss, lower is better.
      has_pairs: whether to measure models on all sentence objectives, not only on their own.
      tokens: number of training tokens of a small cell.
    """

    title: str
    small: tuple[Cell, ...]
    paper: tuple[Cell, ...]
    base: str = "albert-base-v1"
    printed: str = "average score"
    figures: tuple[str, ...] = (LOSS,)
    has_pairs: bool = False
    tokens: float = 10e6


def size(hidden: int, head: int = 64, **others: Any) -> dict[str, Any]:
    """Fields for a hidden size: heads of size `head`, and an inner size of 4 H."""
    heads = {"num_attention_heads": hidden // head, "intermediate_size": 4 * hidden}
    return {"hidden_size": hidden, **heads, **others}


# Starting weights need a projection, even if E = H, and E <= H in all cells of `width`. All tables
# share this base, so that a run of it counts in every table.
SMALL = size(128, 32, embedding_size=48, num_hidden_layers=4, always_project_embeddings=True)
SMALL_FLAGS = {
    "train_batch_size": 32,
    "precision": "mixed_bfloat16",
    "optimizer": "adamw",
    "bias_correction": "true",
    "beta_2": 0.98,
    "learning_rate": 0.001,
    "steps_per_loop": 50,
    "checkpoint_steps": 500,
}
PAPER_FLAGS = {
    "train_batch_size": 4096,
    "optimizer": "lamb",
    "learning_rate": 0.00176,
    "num_train_steps": 125_000,
    "num_warmup_steps": 3125,
    "checkpoint_steps": 5000,
    "eval_steps": 5000,
    "distribution": "tpu",
    "tpu": "local",
}

_DROPOUT = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
_MILLION = {"num_train_steps": 1_000_000}
_MINUTES = {"schedule": "wsd", "max_minutes": 12, "num_warmup_steps": 50}


def _preset(name: str, preset: str, against: str = "", *paper: float | str, **flags: int) -> Cell:
    return Cell(name, get_preset(preset).to_dict(), against, paper, flags)


def _rows(scores: Mapping[tuple[str, int], float]) -> tuple[Cell, ...]:
    """Rows from (sharing, E) -> average score."""
    return tuple(
        Cell(f"{kind}, E = {e}", {"parameter_sharing": kind, "embedding_size": e}, "", (score,))
        for (kind, e), score in scores.items()
    )


def _pairs(model: Mapping[str, Any]) -> tuple[Cell, ...]:
    return (
        Cell("none", model, "", (54.9, 52.4, 53.3), objective="none"),
        Cell("nsp", model, "none", (54.5, 90.5, 52.0), objective="nsp"),
        Cell("sop", model, "none", (54.0, 78.9, 86.5), objective="sop"),
    )


def _optimizer(optimizer: str, rate: float, cost: float = 1) -> Cell:
    """A row to compare with the base."""
    flags = {"optimizer": optimizer.lower(), "learning_rate": rate}
    return Cell(f"{optimizer}, {rate}", {}, "AdamW, 0.001", flags=flags, cost=cost)


def _layers(number: int) -> dict[str, int]:
    return {"num_hidden_layers": number}


def _deeper(name: str, layers: int, start: str, *paper: float | str) -> Cell:
    """A row that starts from a shallower one and is compared with it."""
    return Cell(name, _layers(layers), start, paper or (BETTER,), start=start)


TABLES = {
    "models": Table(
        "Tables 1 and 2: BERT and ALBERT of several widths",
        small=(
            Cell("BERT, H = 128", {"embedding_size": 128, "parameter_sharing": "none"}),
            Cell("ALBERT, H = 128", {}, "BERT, H = 128", (WORSE,)),
            Cell("ALBERT, H = 256", size(256, 32), "ALBERT, H = 128", (BETTER,)),
        ),
        paper=(
            _preset("BERT base", "bert-base", "", 82.3),
            _preset("BERT large", "bert-large", "BERT base", 85.2),
            _preset("ALBERT base", "albert-base-v1", "BERT base", 80.1),
            _preset("ALBERT large", "albert-large-v1", "BERT large", 82.4),
            _preset("ALBERT xlarge", "albert-xlarge-v1", "BERT large", 85.5),
            _preset("ALBERT xxlarge", "albert-xxlarge-v1", "BERT large", 88.7),
        ),
    ),
    "embedding": Table(
        "Table 3: the size of the embeddings",
        small=(
            Cell("E = 64", {"embedding_size": 64}),
            Cell("E = 16", {"embedding_size": 16}, "E = 64"),
            Cell("E = 128, as wide as H", {"embedding_size": 128}, "E = 64"),
        ),
        paper=_rows(
            {("all", 64): 79.0, ("all", 128): 80.1, ("all", 256): 79.6, ("all", 768): 79.8}
            | {("none", 64): 81.3, ("none", 128): 81.7, ("none", 256): 81.8, ("none", 768): 82.3}
        ),
    ),
    "sharing": Table(
        "Table 4: what the layers share (figures of E = 128)",
        small=(
            Cell("all", {}, "", (80.1,)),
            Cell("groups of two layers", {"num_hidden_groups": 2}, "all"),
            Cell("attention shared", {"parameter_sharing": "attention"}, "all", (81.7,)),
            Cell("feed-forward shared", {"parameter_sharing": "ffn"}, "all", (80.2,)),
            Cell("nothing", {"parameter_sharing": "none"}, "all", (81.6,)),
        ),
        paper=(
            *_rows({("all", 768): 79.8, ("attention", 768): 81.6}),
            *_rows({("ffn", 768): 79.5, ("none", 768): 82.3}),
            *_rows({("all", 128): 80.1, ("attention", 128): 81.7}),
            *_rows({("ffn", 128): 80.2, ("none", 128): 81.6}),
            Cell("groups of two layers, E = 128", {"num_hidden_groups": 6}),
        ),
    ),
    "sentence_objective": Table(
        "Table 5: no sentence objective, next sentence (nsp), order of segments (sop)",
        # Two layers learn sentence order as well as four, in half the time (docs/weights.md).
        small=_pairs(size(256, embedding_size=128, num_hidden_layers=2)),
        paper=_pairs({}),
        printed="percent",
        figures=("masked_lm_accuracy", "nsp_accuracy", "sop_accuracy"),
        has_pairs=True,
        tokens=36e6,
    ),
    "equal_time": Table(
        "Table 6: equal time of training",
        small=(
            Cell(
                "BERT, H = 256",
                size(256, 32, embedding_size=256, parameter_sharing="none"),
                flags=_MINUTES,
            ),
            Cell("ALBERT, H = 512", size(512, 32), "BERT, H = 256", (BETTER,), _MINUTES),
        ),
        paper=(
            _preset("BERT large, 34 h", "bert-large", "", 87.2, num_train_steps=400_000),
            _preset("ALBERT xxlarge, 32 h", "albert-xxlarge-v1", "BERT large, 34 h", 88.7),
        ),
        tokens=1e9,  # Never reached: max_minutes ends the run first.
    ),
    "optimizer": Table(
        "Optimizers in equal time (none of the paper's tables)",
        small=(
            Cell("AdamW, 0.001"),
            *(_optimizer("AdamW", rate) for rate in (0.002, 0.004)),
            *(_optimizer("LAMB", rate) for rate in (0.0035, 0.007, 0.014)),
            *(_optimizer("Muon", rate, cost=1.026) for rate in (0.002, 0.004, 0.008)),
        ),
        paper=(),
    ),
    "data": Table(
        "Table 7: additional data",
        small=(
            Cell("one corpus", {}, "", (80.1,)),
            Cell("both", {}, "one corpus", (80.8,), more=True),
        ),
        paper=(Cell("one corpus", {}, "", (80.1,)), Cell("both", {}, "", (80.8,), more=True)),
        figures=(LOSS, f"more_{LOSS}"),
    ),
    "dropout": Table(
        "Table 8: without dropout",
        small=(
            Cell("dropout 0.1", _DROPOUT, "", (90.4,)),
            Cell("without", {}, "dropout 0.1", (90.7,)),
        ),
        paper=(
            Cell("dropout 0.1", _DROPOUT, "", (90.4,), _MILLION),
            Cell("without", {}, "dropout 0.1", (90.7,), _MILLION),
        ),
        base="albert-xxlarge-v1",
    ),
    "depth": Table(
        "Table 11: the number of layers",
        small=(
            Cell("1 layer", _layers(1)),
            Cell("2 layers", _layers(2), "1 layer"),
            Cell("4 layers", _layers(4), "2 layers"),
            Cell("8 layers", _layers(8), "4 layers"),
            _deeper("2 layers, after 1", 2, "1 layer"),
            _deeper("4 layers, after 2", 4, "2 layers, after 1"),
            _deeper("8 layers, after 4", 8, "4 layers, after 2"),
        ),
        paper=(
            Cell("1 layer", _layers(1), "", (52.9,)),
            _deeper("3 layers", 3, "1 layer", 71.2),
            _deeper("6 layers", 6, "3 layers", 77.2),
            _deeper("12 layers", 12, "6 layers", 81.5),
            _deeper("24 layers", 24, "12 layers", 82.1),
            _deeper("48 layers", 48, "24 layers", 81.8),
        ),
        base="albert-large-v1",
    ),
    "width": Table(
        "Table 12: the width",
        small=(
            Cell("H = 64", size(64, 32)),
            Cell("H = 128", {}, "H = 64", (BETTER,)),
            Cell("H = 256", size(256, 32), "H = 128", (BETTER,)),
        ),
        paper=tuple(
            Cell(f"H = {width}", size(width, num_hidden_layers=3), "", (score,))
            for width, score in {1024: 71.2, 2048: 74.6, 4096: 76.3, 6144: 74.0}.items()
        ),
        base="albert-large-v1",
    ),
}
