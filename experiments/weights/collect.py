"""Makes a model folder from the weights that accelerator.py wrote.

python -m experiments.weights.collect --compiled=compiled --weights=weights.npz --output_dir=model
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from albert_tf import AlbertConfig, AlbertPretrainer
from albert_tf.errors import UserError
from data_pipeline.command_line import flags, run_binary
from data_pipeline.tokenizers.loading import load_tokenizer
from experiments.weights.folders import write_weights

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Input and output")
    flags.DEFINE_string("compiled", None, "Folder of compile_update.", required=True)
    flags.DEFINE_string("weights", None, "File of weights of the run.", required=True)
    flags.DEFINE_string(
        "output_dir", None, "Folder to write, in Hugging Face's format and float16.", required=True
    )


def main() -> None:
    compiled = Path(FLAGS.compiled)
    about = json.loads((compiled / "update.json").read_text())
    tokenizer = load_tokenizer(str(compiled / about["vocab_file"]))
    config = AlbertConfig.from_json_file(str(compiled / "config.json"))
    model = AlbertPretrainer(config)
    variables = {each.name: each for each in model.trainable_variables}
    with np.load(FLAGS.weights) as file:
        arrays = {name: file[name] for name in file.files}
    if sorted(arrays) != sorted(variables):
        raise UserError(f"{FLAGS.weights} does not hold the weights of {FLAGS.compiled}.")
    for name, array in arrays.items():
        variables[name].assign(array.astype(np.float32))
    write_weights(model, tokenizer, FLAGS.output_dir)


if __name__ == "__main__":
    define_flags()
    run_binary(main)
