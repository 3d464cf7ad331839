"""Averages weights that were trained from the same start; the mean is often better than each.

    python -m experiments.weights.average --output_dir=mean \
        --models='0.6*albert-small-en,0.4*runs/second/second_1/weights'

Wortsman et al., "Robust fine-tuning of zero-shot models" and "Model soups" (both 2022).
"""

from __future__ import annotations

from albert_tf import AlbertPretrainer, preset_vocabulary
from albert_tf.errors import UserError
from data_pipeline.command_line import flags, run_binary
from data_pipeline.tokenizers.loading import load_tokenizer
from experiments.weights.folders import write_weights

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Input and output")
    flags.DEFINE_list(
        "models", None, "Weights as SHARE*NAME_OR_PATH; shares sum to 1.", required=True
    )
    flags.DEFINE_string(
        "output_dir", None, "Folder to write, in Hugging Face's format and float16.", required=True
    )


def main() -> None:
    paths, shares = zip(*map(share_of, FLAGS.models))
    if not abs(sum(shares) - 1) <= 1e-6:  # Also if a share is NaN.
        raise UserError(f"--models={','.join(FLAGS.models)}: the shares do not sum to 1.")
    models = [AlbertPretrainer.from_preset(path) for path in paths]
    tokenizers = [load_tokenizer(preset_vocabulary(path)) for path in paths]
    for path, model, tokenizer in zip(paths, models, tokenizers):
        if model.config != models[0].config or tokenizer.fingerprint != tokenizers[0].fingerprint:
            raise UserError(f"{path} has another configuration or vocabulary than {paths[0]}.")
    for variables in zip(*(model.trainable_variables for model in models)):
        values = [share * each.numpy() for share, each in zip(shares, variables)]
        variables[0].assign(sum(values))
    write_weights(models[0], tokenizers[0], FLAGS.output_dir)


def share_of(text: str) -> tuple[str, float]:
    """ "0.6*albert-small-en" -> the path and its weight in the mean."""
    share, _, path = text.partition("*")
    try:
        return path, float(share)
    except ValueError:
        raise UserError(f"--models={text}: expected SHARE*NAME_OR_PATH, as 0.5*runs/a.") from None


if __name__ == "__main__":
    define_flags()
    run_binary(main)
