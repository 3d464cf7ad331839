"""How much each layer changes its input: the paper's figure of distances and angles (section 3.1).

    python -m experiments.layer_similarity --model=albert-small-en --model=runs/unshared \
        --text=heldout.jsonl --output_dir=layers

A stack whose layers share all weights is applied for --iterations times its depth. The last panel
shows whether models can copy a word from earlier in a text (copy_probe).
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from matplotlib.figure import Figure

from albert_tf import AlbertEncoder, from_preset, preset_vocabulary
from albert_tf.distillation.states import record_states
from albert_tf.pretrained.loading import locate
from benchmarks.tables import write_csv
from data_pipeline.command_line import flags, run_binary
from data_pipeline.corpus.documents import Corpus, read_documents
from data_pipeline.errors import UserError
from data_pipeline.finetuning.examples import TextExample
from data_pipeline.finetuning.features import encode_texts
from data_pipeline.tokenizers.loading import load_tokenizer
from experiments.copy_probe import DISTANCES, probe

FLAGS = flags.FLAGS
Row: TypeAlias = dict[str, Any]
_BATCH = 16  # Texts per batch; small, because the outputs of all layers are kept in memory.
PANELS = {
    "distance": "distance of a layer's output from its input",
    "relative distance": "distance as a share of the input's norm",
    "angle": "angle between output and input (degrees)",
}
STYLES = {True: "o-", False: "s:"}  # Line styles: copies after the same word, and others.


def define_flags() -> None:
    """Flags of this program."""
    flags.group("What is measured")
    flags.DEFINE_multi_string(
        "model", None, "Weights: a name, a folder or a checkpoint; may be repeated.", required=True
    )
    flags.DEFINE_string("text", None, "Text files in any format of docs/data.md.", required=True)
    flags.DEFINE_integer("max_texts", 128, "Documents to read.", lower_bound=1)
    flags.DEFINE_integer("max_seq_length", 128, "Tokens to read of a document.", lower_bound=5)
    flags.DEFINE_integer("iterations", 4, "Depth of shared stacks, in multiples of their own.", 1)
    flags.DEFINE_bool("copies", True, "Probe for copies; all models need a masked-word head.")
    flags.group("Output")
    flags.DEFINE_string("output_dir", None, "Folder for CSV files and a picture.", required=True)


def main() -> None:
    documents = itertools.islice(read_documents(Corpus(FLAGS.text)), FLAGS.max_texts)
    texts = [TextExample("", " ".join(each), None, None, FLAGS.text, 0) for each in documents]
    if not texts:
        raise UserError(f"--text={FLAGS.text} has no text. Give files with sentences.")
    folder = Path(FLAGS.output_dir)
    copies: list[Row] = []
    if FLAGS.copies:
        copies = [{"model": name, **row} for name in FLAGS.model for row in probe(name)]
        write_csv(folder / "copies.csv", copies)
    layers = [row for name in FLAGS.model for row in measure(name, texts)]
    write_csv(folder / "layers.csv", layers)
    plot(layers, copies, folder / "layers.png")
    print(f"Wrote {folder / 'layers.png'}")


def measure(name: str, texts: list[TextExample]) -> list[Row]:
    """Rows for each measure and layer of a model: mean and percentiles over the tokens of texts.
    `depth` is the number of layers with which it was trained.
    """
    config = locate(name).config()
    if FLAGS.max_seq_length > (most := config.max_position_embeddings):
        raise UserError(f"--max_seq_length={FLAGS.max_seq_length}: {name} has {most} positions.")
    is_shared = config.num_attention_groups == config.num_ffn_groups == 1
    layers = config.num_hidden_layers * (FLAGS.iterations if is_shared else 1)
    encoder = from_preset(name, AlbertEncoder, config=config.replace(num_hidden_layers=layers))
    tokenizer = load_tokenizer(preset_vocabulary(name))
    examples = encode_texts(texts, tokenizer, FLAGS.max_seq_length)
    batches = np.split(np.arange(len(texts)), range(_BATCH, len(texts), _BATCH))
    parts = [changes(hidden_states(encoder, examples.inputs(batch))) for batch in batches]
    depth = config.num_hidden_layers * config.inner_group_num
    rows = []
    for kind in parts[0]:
        values = np.concatenate([part[kind] for part in parts], axis=1)  # [layers, T]
        common = {"model": name, "depth": depth, "tokens": values.shape[1], "measure": kind}
        figures = {"mean": values.mean(axis=1)}
        figures["p10"], figures["p90"] = np.percentile(values, [10, 90], axis=1)
        for layer in range(len(values)):
            ours = {key: float(f"{figure[layer]:.6g}") for key, figure in figures.items()}
            rows.append({**common, "layer": layer + 1, **ours})
    return rows


def hidden_states(encoder: AlbertEncoder, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """The input of the first layer (the projected embedding) and the output of each layer, for the
    T real tokens: float32 [1 + layers, T, H].
    """
    with record_states(encoder) as states:
        encoder(inputs)
    return np.stack([state.numpy()[inputs["input_mask"] == 1] for state in states.hidden])


def changes(states: np.ndarray) -> dict[str, np.ndarray]:
    """Result of `hidden_states` -> measures of the change in each layer, [layers, T]."""
    norms = np.linalg.norm(states, axis=-1)
    distance = np.linalg.norm(np.diff(states, axis=0), axis=-1)
    cosine = (states[1:] * states[:-1]).sum(axis=-1) / (norms[1:] * norms[:-1])
    found = {"distance": distance, "relative distance": distance / norms[:-1], "cosine": cosine}
    return {**found, "angle": np.degrees(np.arccos(np.clip(cosine, -1, 1)))}


def plot(layers: list[Row], copies: list[Row], path: Path) -> None:
    """Draws the panels."""
    figure = Figure(figsize=(11, 7), layout="constrained")
    *panels, last = figure.subplots(2, 2).flat
    for number, name in enumerate(dict.fromkeys(row["model"] for row in layers)):
        for axes, kind in zip(panels, PANELS):
            rows = [row for row in layers if (row["model"], row["measure"]) == (name, kind)]
            draw_layers(axes, rows, f"C{number}")
        if ours := [row for row in copies if row["model"] == name]:
            draw_copies(last, ours, f"C{number}")
    for axes, title in zip(panels, PANELS.values()):
        axes.set(title=title, xlabel="layer (dashed: beyond the depth of training)")
    last.set(title="words found that stand earlier in a text (%)", xticks=DISTANCES)
    last.set(xlabel="tokens from the word to the mask", ylim=(-3, 103))
    for is_same, label in ((True, "after the same word"), (False, "five other questions")):
        last.plot([], [], STYLES[is_same], color="gray", label=label)
    last.legend()
    for axes in (*panels, last):
        axes.grid(alpha=0.3)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.savefig(path, dpi=110)


def draw_layers(axes: Any, rows: list[Row], color: str) -> None:
    """Means and percentiles of a model's layers."""
    depth, label = rows[0]["depth"], rows[0]["model"]
    x, mean, low, high = ([row[key] for row in rows] for key in ("layer", "mean", "p10", "p90"))
    axes.plot(x[:depth], mean[:depth], "o-", color=color, markersize=3, label=label)
    axes.plot(x[depth - 1 :], mean[depth - 1 :], "--", color=color)
    axes.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)


def draw_copies(axes: Any, rows: list[Row], color: str) -> None:
    """The share of words that a model copies: after the same word, and the mean of the others."""
    for is_same, style in STYLES.items():
        shares: dict[int, list[float]] = {distance: [] for distance in DISTANCES}
        for row in rows:
            if (row["question"] == "same word") == is_same:
                shares[row["distance"]].append(100 * row["found"] / row["words"])
        axes.plot(DISTANCES, [np.mean(each) for each in shares.values()], style, color=color)


if __name__ == "__main__":
    define_flags()
    run_binary(main)
