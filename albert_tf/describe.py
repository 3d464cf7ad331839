"""Prints the costs of a model: parameters by part, arithmetic, memory; and the paper's tables.

python -m albert_tf.describe --preset=albert-base-v2 --batch_size=8 --max_seq_length=128
python -m albert_tf.describe --paper_table=sharing
"""

from __future__ import annotations

from albert_tf.analysis.costs import (
    count_parameters,
    encoder_flops_per_token,
    masked_lm_flops_per_prediction,
    training_bytes,
)
from albert_tf.analysis.paper_tables import NAMES, paper_table
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.pretrained.presets import BASELINE, PAPER_BASELINES, PRESETS, get_preset
from data_pipeline.command_line import flags, run_binary

FLAGS = flags.FLAGS
_MASKED_SHARE = 0.15  # The share of tokens that are masked in the published recipe.


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Model")
    flags.DEFINE_string("preset", None, f"Architecture by name: {', '.join(PRESETS)}.")
    flags.DEFINE_string(
        "config_file",
        None,
        "Architecture from an albert_config.json, or from Hugging Face's config.json.",
    )
    flags.group("What to tell")
    flags.DEFINE_integer("batch_size", 32, "Number of sequences in a training step.", lower_bound=1)
    flags.DEFINE_integer("max_seq_length", 512, "Number of tokens in a sequence.", lower_bound=1)
    flags.DEFINE_string(
        "paper_table",
        None,
        "Table of the paper to print instead of a model's costs, by its number in the ICLR version "
        f"or by name: {', '.join(NAMES)}.",
    )


def main() -> None:
    if FLAGS.paper_table:
        print(paper_table(FLAGS.paper_table))
        return
    if bool(FLAGS.preset) == bool(FLAGS.config_file):
        raise UserError("pass one of --preset and --config_file, or --paper_table.")
    if FLAGS.preset:
        config = get_preset(FLAGS.preset)
    else:
        config = AlbertConfig.from_json_file(FLAGS.config_file)
    if FLAGS.preset in PAPER_BASELINES:
        print(f"{FLAGS.preset}: {BASELINE}")
    print(description(config, FLAGS.batch_size, FLAGS.max_seq_length))


def description(config: AlbertConfig, batch_size: int, sequence_length: int) -> str:
    """A text with fields, parameters, arithmetic and memory of an architecture."""
    if sequence_length > config.max_position_embeddings:
        raise UserError(
            f"--max_seq_length={sequence_length} is longer than the model's "
            f"{config.max_position_embeddings} positions."
        )
    fields = [f"  {name:<30} {value}" for name, value in config.to_dict().items()]
    parts = count_parameters(config)
    heads = parts["masked_lm"] + parts["sentence_order"]
    total = sum(parts.values())
    counts = {**parts, "encoder": total - heads, "with pre-training heads": total}
    forward = encoder_flops_per_token(config, sequence_length)
    masked = _MASKED_SHARE * masked_lm_flops_per_prediction(config)
    # An empty batch needs only the memory that does not grow with the batch size.
    weights = training_bytes(config, total, 0, sequence_length)
    memory = training_bytes(config, total, batch_size, sequence_length)
    return "\n".join(
        [
            "Architecture",
            *fields,
            "Parameters",
            *(f"  {name:<30} {count:>15,}" for name, count in counts.items()),
            f"Operations a token, sequences of {sequence_length}",
            f"  {'encoder, forward':<30} {forward / 1e6:>15,.1f} MFLOP",
            f"  {'pre-training step':<30} {3 * (forward + masked) / 1e6:>15,.1f} MFLOP",
            f"Memory of a training step, {batch_size} x {sequence_length} tokens, float32, about",
            f"  {'weights and optimizer':<30} {weights / 2**30:>15,.2f} GiB",
            f"  {'activations':<30} {(memory - weights) / 2**30:>15,.2f} GiB",
        ]
    )


if __name__ == "__main__":
    define_flags()
    run_binary(main)
