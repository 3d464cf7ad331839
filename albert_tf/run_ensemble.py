r"""Averages the outputs that runs of fine-tuned models have stored; no model runs again.

    python -m albert_tf.run_ensemble --task=mrpc --data_dir=glue \
        --runs=runs/mrpc/seed-0,runs/mrpc/seed-1 --output_dir=ensembles/mrpc
    python -m albert_tf.run_ensemble --task=mrpc --data_dir=glue --runs=runs/mrpc \
        --checkpoints=best,last --choose=greedy --average=logits --output_dir=ensembles/mrpc

Runs store their dev outputs automatically; for other splits, use run_finetuning --mode=predict.
"""

from __future__ import annotations

from albert_tf.finetuning import flags as finetuning_flags
from albert_tf.finetuning.runs.ensemble import EnsembleSettings, run_ensemble
from albert_tf.finetuning.runs.members import CHECKPOINTS
from data_pipeline.command_line import flags, run_binary
from data_pipeline.command_line.settings import define, read

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    finetuning_flags.define_data_flags()
    finetuning_flags.define_split_flags()
    finetuning_flags.define_answer_flags(of_ensemble=True)
    flags.group("Ensemble")
    flags.DEFINE_list(
        "runs",
        [],
        "Folders of runs of run_finetuning; * and ? match several. A folder of --seeds or --search "
        "means all its runs.",
        required=True,
    )
    define(EnsembleSettings, "Ensemble")
    flags.register_validator(
        "checkpoints",
        lambda names: names and len(set(names)) == len(names),
        message=f"Name some of {', '.join(CHECKPOINTS)}, each once.",
    )
    flags.DEFINE_string("output_dir", None, "Folder to write the ensemble to.", required=True)


def main() -> None:
    run_ensemble(
        FLAGS.runs,
        finetuning_flags.task(),
        finetuning_flags.task_data(),
        FLAGS.output_dir,
        read(EnsembleSettings),
    )


if __name__ == "__main__":
    define_flags()
    run_binary(main)
