"""The columns of Lan et al.'s tables that follow from configurations, next to printed values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from albert_tf.analysis.costs import (
    count_parameters,
    encoder_flops_per_token,
    encoder_parameters,
)
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.pretrained.presets import PRESETS

ICLR, V1 = "ICLR", "v1"  # The version of 2020; the first one on arXiv, of September 2019.
_LENGTH = 512  # Tokens in a sequence, for operations.

# (F1, EM) of SQuAD 1.1 and of 2.0, then MNLI, SST-2, RACE, and the average that is printed.
Scores = tuple[tuple[float, float], tuple[float, float], float, float, float, float]


@dataclasses.dataclass(frozen=True)
class Row:
    """A row: its name, the printed millions of parameters, and the printed scores of Table 2."""

    name: str
    millions: int
    config: AlbertConfig
    version: str = ICLR
    scores: Scores | None = None


def average(scores: Scores) -> float:
    """The "Avg" of the paper: the mean of five tasks; each SQuAD counts as (F1 + EM) / 2."""
    return sum(sum(each) / 2 if isinstance(each, tuple) else each for each in scores[:5]) / 5


_MODELS = (
    Row("BERT base", 108, PRESETS["bert-base"]),
    Row("BERT large", 334, PRESETS["bert-large"]),
    Row("BERT xlarge", 1270, PRESETS["bert-xlarge"], V1),
    Row("ALBERT base", 12, PRESETS["albert-base-v1"]),
    Row("ALBERT large", 18, PRESETS["albert-large-v1"]),
    Row("ALBERT xlarge", 60, PRESETS["albert-xlarge-v1"]),
    Row("ALBERT xxlarge", 235, PRESETS["albert-xxlarge-v1"]),
)
_RESULTS: dict[str, Scores] = {
    "BERT base": ((90.4, 83.2), (80.4, 77.6), 84.5, 92.8, 68.2, 82.3),
    "BERT large": ((92.2, 85.5), (85.0, 82.2), 86.6, 93.0, 73.9, 85.2),
    "ALBERT base": ((89.3, 82.3), (80.0, 77.1), 81.6, 90.3, 64.0, 80.1),
    "ALBERT large": ((90.6, 83.9), (82.3, 79.4), 83.5, 91.7, 68.5, 82.4),
    "ALBERT xlarge": ((92.5, 86.1), (86.1, 83.1), 86.4, 92.4, 74.8, 85.5),
    "ALBERT xxlarge": ((94.1, 88.3), (88.1, 85.1), 88.0, 95.2, 82.3, 88.7),
}
# Embedding size -> millions of parameters with nothing shared, with all shared.
_EMBEDDINGS = {64: (87, 10), 128: (89, 12), 256: (93, 16), 768: (108, 31)}
# Parts that are shared -> millions of parameters with E = 768, with E = 128.
_SHARING = {"all": (31, 12), "attention": (83, 64), "ffn": (57, 38), "none": (108, 89)}
_LAYERS = (1, 3, 6, 12, 24, 48)
_WIDTHS = {1024: 18, 2048: 60, 4096: 225, 6144: 499}


def _embedding() -> Iterator[Row]:
    for column, sharing in enumerate(("none", "all")):
        for size, millions in _EMBEDDINGS.items():
            yield Row(f"{sharing} shared, E = {size}", millions[column], _base(size, sharing))


def _sharing() -> Iterator[Row]:
    for column, size in enumerate((768, 128)):
        for sharing, millions in _SHARING.items():
            yield Row(f"E = {size}, {sharing} shared", millions[column], _base(size, sharing))


def _base(embedding_size: int, sharing: str) -> AlbertConfig:
    base = PRESETS["albert-base-v1"]
    return base.replace(embedding_size=embedding_size, parameter_sharing=sharing)


def _depth() -> Iterator[Row]:
    for layers in _LAYERS:
        config = PRESETS["albert-large-v1"].replace(num_hidden_layers=layers)
        yield Row(f"{layers} layers", 18, config)


def _width() -> Iterator[Row]:
    for width, millions in _WIDTHS.items():
        config = PRESETS["albert-large-v1"].replace(
            num_hidden_layers=3,
            hidden_size=width,
            intermediate_size=4 * width,
            num_attention_heads=width // 64,
        )
        yield Row(f"3 layers, H = {width}", millions, config)


@dataclasses.dataclass(frozen=True)
class Table:
    """A table: its number in the ICLR version, its rows, and notes on them."""

    number: int
    rows: Sequence[Row]
    notes: Sequence[str] = ()


_BIG = (
    "ALBERT xlarge: v1 prints 59M, which is near; nothing explains 60M.",
    "ALBERT xxlarge: 235M, and v1's 233M, are more than its own configuration has.",
)
TABLES = {
    "models": Table(1, _MODELS, ("BERT xlarge is in v1 only.", *_BIG)),
    "results": Table(
        2,
        [
            dataclasses.replace(row, scores=_RESULTS[row.name])
            for row in _MODELS
            if row.name in _RESULTS
        ],
        _BIG,
    ),
    "embedding": Table(3, list(_embedding())),
    "sharing": Table(4, list(_sharing())),
    "depth": Table(11, list(_depth())),
    "width": Table(
        12,
        list(_width()),
        ("H / 64 heads; their number changes no count.",),
    ),
}
NAMES = {str(table.number): name for name, table in TABLES.items()} | {
    name: name for name in TABLES
}
"""What --paper_table takes (a number of the ICLR version, or a name) -> name in TABLES."""


def paper_table(name: str) -> str:
    """A table of the paper, named as in NAMES, as text: rounded millions next to exact counts."""
    if name not in NAMES:
        raise UserError(
            f"--paper_table={name} is not one of {', '.join(NAMES)}. Other tables need training: "
            "use python -m experiments.paper --table=..."
        )
    table = TABLES[NAMES[name]]
    has_scores = table.rows[0].scores is not None
    lines = [
        f"{NAMES[name]}: Table {table.number} of the ICLR version, computed",
        f"{'':<27} {'paper':>6} {'version':>7} {'pooler':>7} {'encoder':>13} {'no pooler':>13} "
        f"{'with heads':>13} {'VE + EH':>8} {'VH':>7} {'smaller':>8} {'MFLOP':>8}"
        + (f" {'Avg':>5} {'computed':>8}" if has_scores else ""),
    ]
    lines += [_line(row) for row in table.rows]
    lines += [
        "pooler: whether the printed number has it; either: both round to it; ?: neither does.",
        "VE + EH, VH: word embeddings with and without factorization, in millions.",
        "smaller: how many times, than a BERT of this depth and width, unshared, E = H.",
        f"MFLOP: operations of the encoder for a token, forward, in sequences of {_LENGTH}.",
    ]
    if has_scores:
        lines.append("computed: the mean of five tasks, SQuAD as (F1 + EM) / 2, of printed scores.")
    return "\n".join([*lines, *table.notes])


def _line(row: Row) -> str:
    config, parts = row.config, count_parameters(row.config)
    encoder, heads = encoder_parameters(config), sum(parts.values())
    without = encoder - parts["pooler"]
    pooler = (("?", "no"), ("yes", "either"))[_is(row, encoder)][_is(row, without)]
    vocabulary, hidden, embedding = config.vocab_size, config.hidden_size, config.embedding_size
    factorized = vocabulary * embedding + (embedding * hidden if embedding != hidden else 0)
    bert = config.replace(embedding_size=hidden, parameter_sharing="none")
    return (
        f"{row.name:<27} {row.millions:>5}M {row.version:>7} {pooler:>7} {encoder:>13,} "
        f"{without:>13,} {heads:>13,} {factorized / 1e6:>8.2f} {vocabulary * hidden / 1e6:>7.2f} "
        f"{encoder_parameters(bert) / encoder:>7.1f}x "
        f"{encoder_flops_per_token(config, _LENGTH) / 1e6:>8,.1f}"
        + (f" {row.scores[5]:>5} {average(row.scores):>8.2f}" if row.scores else "")
    )


def _is(row: Row, count: int) -> bool:
    """Whether a count rounds to the printed millions, to three digits: 1,271.1 to 1270."""
    return f"{round(count / 1e6):.3g}" == f"{row.millions:.3g}"
