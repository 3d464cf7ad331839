r"""Fine-tunes an ALBERT on a task, evaluates it, and predicts with it.

    python -m albert_tf.run_finetuning --task=mrpc --data_dir=glue \
        --init_checkpoint=albert-base-v2 --output_dir=runs/mrpc
    python -m albert_tf.run_finetuning --task=tsv --train_file=train.tsv --dev_file=dev.tsv \
        --init_checkpoint=runs/base/model --output_dir=runs/mine
    python -m albert_tf.run_finetuning --mode=predict --task=tsv --predict_file=new.tsv \
        --output_dir=runs/mine
"""

from __future__ import annotations

from data_pipeline.command_line import flags, run_binary  # isort: skip  First: quiet TensorFlow.

from albert_tf import finetuning_flags
from albert_tf import flags as shared_flags
from albert_tf.finetuning.finished import evaluate, load_finetuned, predict
from albert_tf.finetuning.outcome import best_folder
from albert_tf.finetuning.training import finetune
from albert_tf.training.supervision import run_supervised

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    finetuning_flags.define_data_flags()
    finetuning_flags.define_answer_flags()
    shared_flags.define_run_flags(modes=("train_and_eval", "eval", "predict"))
    shared_flags.define_model_flags()
    shared_flags.define_training_flags(optimizer="adamw", learning_rate=2e-5, train_batch_size=32)
    finetuning_flags.define_length_flags()
    shared_flags.define_device_flags()


def main() -> None:
    devices = shared_flags.prepare_flagged_devices()
    task, data = finetuning_flags.task(), finetuning_flags.data_source()
    if FLAGS.mode == "train_and_eval":
        finetune(
            shared_flags.initial_model(),
            task,
            data,
            FLAGS.output_dir,
            finetuning_flags.settings(),
            devices,
            finetuning_flags.run_settings,
        )
        return
    folder = FLAGS.init_checkpoint or best_folder(FLAGS.output_dir)
    use = evaluate if FLAGS.mode == "eval" else predict
    found = load_finetuned(folder, task, devices)
    use(found, data, finetuning_flags.splits(task), FLAGS.eval_batch_size, FLAGS.output_dir)


if __name__ == "__main__":
    define_flags()
    run_binary(lambda: run_supervised(main, FLAGS.max_failures, FLAGS.output_dir))
