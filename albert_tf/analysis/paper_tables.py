"""The "Parameters" columns of Lan et al. (ICLR 2020), next to exact counts."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tf.analysis.costs import count_parameters
from albert_tf.config import AlbertConfig
from albert_tf.pretrained.presets import PRESETS

_MODELS = {
    "BERT base": ("bert-base", 108),
    "BERT large": ("bert-large", 334),
    "BERT xlarge": ("bert-xlarge", 1270),
    "ALBERT base": ("albert-base-v1", 12),
    "ALBERT large": ("albert-large-v1", 18),
    "ALBERT xlarge": ("albert-xlarge-v1", 60),
    "ALBERT xxlarge": ("albert-xxlarge-v1", 235),
}
# Embedding size -> millions of parameters with nothing shared, with all shared.
_EMBEDDINGS = {64: (87, 10), 128: (89, 12), 256: (93, 16), 768: (108, 31)}
# Parts that are shared -> millions of parameters with E = 768, with E = 128.
_SHARING = {"all": (31, 12), "attention": (83, 64), "ffn": (57, 38), "none": (108, 89)}

Row = tuple[str, int, AlbertConfig]


def _models(names: tuple[str, ...]) -> Iterator[Row]:
    for name in names:
        preset, millions = _MODELS[name]
        yield name, millions, PRESETS[preset]


def _table_3() -> Iterator[Row]:
    base = PRESETS["albert-base-v1"]
    for column, sharing in enumerate(("none", "all")):
        for size, millions in _EMBEDDINGS.items():
            config = base.replace(embedding_size=size, parameter_sharing=sharing)
            yield f"{sharing} shared, E = {size}", millions[column], config


def _table_4() -> Iterator[Row]:
    base = PRESETS["albert-base-v1"]
    for column, size in enumerate((768, 128)):
        for sharing, millions in _SHARING.items():
            config = base.replace(embedding_size=size, parameter_sharing=sharing)
            yield f"E = {size}, {sharing} shared", millions[column], config


TABLES = {
    1: lambda: _models(tuple(_MODELS)),
    2: lambda: _models(tuple(name for name in _MODELS if name != "BERT xlarge")),
    3: _table_3,
    4: _table_4,
}


def paper_table(number: int) -> str:
    """A table of the paper as text, its rounded millions next to exact counts: 1 (models), 2 (main
    results), 3 (embedding size) or 4 (parameter sharing).
    """
    lines = [f"Table {number}{'':<20} {'paper':>6}  {'encoder':>13}  {'with heads':>13}"]
    for name, millions, config in TABLES[number]():
        parts = count_parameters(config)
        heads = parts["masked_lm"] + parts["sentence_order"]
        encoder = sum(parts.values()) - heads
        lines.append(f"{name:<27} {millions:>5}M  {encoder:13,}  {encoder + heads:13,}")
    if number in (1, 2):
        lines.append(
            "ALBERT xxlarge: the paper's 235M is more than its own configuration has "
            "(222,595,584 and the heads)."
        )
    return "\n".join(lines)
