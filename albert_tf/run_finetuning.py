r"""Fine-tunes an ALBERT on a task, evaluates it, and predicts with it.

    python -m albert_tf.run_finetuning --task=mrpc --data_dir=glue \
        --init_checkpoint=albert-base-v2 --output_dir=runs/mrpc
    python -m albert_tf.run_finetuning --task=tsv --train_file=train.tsv --dev_file=dev.tsv \
        --init_checkpoint=runs/base/model --output_dir=runs/mine
    python -m albert_tf.run_finetuning --mode=predict --task=tsv --predict_file=new.tsv \
        --output_dir=runs/mine
    python -m albert_tf.run_finetuning --task=rte --data_dir=glue --init_checkpoint=runs/mnli \
        --search="learning_rate=1e-5,2e-5;train_batch_size=16,32" --seeds=5 --retries=2 \
        --output_dir=runs/rte
"""

from __future__ import annotations

import functools
import gc

from albert_tf.distillation.teacher import Distillation
from albert_tf.finetuning import flags as finetuning_flags
from albert_tf.finetuning.finetuned import evaluate, load_finetuned, predict
from albert_tf.finetuning.runs.attempts import finished_results, put_aside, run_until_good
from albert_tf.finetuning.runs.results import Result
from albert_tf.finetuning.runs.run_files import answering_folder
from albert_tf.finetuning.runs.series import Variant, best_run, delete_series, run_series
from albert_tf.finetuning.tasks.base import Task, TaskData
from albert_tf.finetuning.training import FineTuningSettings, finetune
from albert_tf.finetuning.training_examples import data_hashes
from albert_tf.keras_compat import keras
from albert_tf.training import InitialModel
from albert_tf.training import flags as shared_flags
from albert_tf.training.devices import Devices
from albert_tf.training.strategy import is_chief
from albert_tf.training.supervision import run_supervised
from data_pipeline.command_line import flags, run_binary
from data_pipeline.command_line.settings import define, read
from data_pipeline.tokenizers import tokenizer_flags
from data_pipeline.tokenizers.loading import load_tokenizer

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    finetuning_flags.define_task_flags()
    finetuning_flags.define_split_flags()
    finetuning_flags.define_records_flag()
    finetuning_flags.define_answer_flags()
    shared_flags.define_run_flags(modes=("train_and_eval", "eval", "predict"))
    finetuning_flags.define_series_flags()
    define(InitialModel, "Model", hidden=("preset", "config_file"))
    define(Distillation, "Distillation")
    define(FineTuningSettings, "Length of training and dropout")
    shared_flags.define_training_flags(
        train_batch_size=32,
        without=("max_minutes", "eval_first"),
        hidden=("optimizer", "schedule"),
        optimizer="adamw",
        learning_rate=2e-5,
    )


def main() -> None:
    devices = shared_flags.prepare_flagged_devices()
    task, data = finetuning_flags.task(), finetuning_flags.task_data()
    if FLAGS.mode == "train_and_eval":
        train(task, data, devices)
        return
    run = best_run(FLAGS.output_dir)
    folder = answering_folder(run, FLAGS.init_checkpoint)
    use = evaluate if FLAGS.mode == "eval" else predict
    finetuned = load_finetuned(folder, task, devices)
    # Only for its error if flags contradict the tokenizer settings of the model.
    load_tokenizer(finetuned.tokenizer.vocab_file, **tokenizer_flags.by_hand())
    finetuning_flags.print_unused_lengths(finetuned.lengths, folder)
    use(finetuned, data, finetuning_flags.splits(task), FLAGS.eval_batch_size, run)


def train(task: Task, data: TaskData, devices: Devices) -> None:
    """Trains one run, or several with --seeds and --search; with --retries, repeats runs that have
    learned nothing.
    """
    finetuning_flags.check_training()
    planned, strategy = finetuning_flags.series(), devices.strategy
    # A single run resumes or is already finished; in a series, finished runs are skipped.
    is_single = not planned and not FLAGS.retries
    hashes = functools.cache(lambda: data_hashes(task, data))
    for variant in planned:  # Bad values of --search are refused before runs are deleted.
        with finetuning_flags.using_variant(FLAGS.output_dir, variant, overwrite=False):
            finetuning_flags.task()
            read(Distillation)
            shared_flags.optimizer_settings(finetuning_flags.settings().recipe(num_examples=1))
    if FLAGS.overwrite and (not is_single or put_aside(FLAGS.output_dir)):
        delete_series(FLAGS.output_dir, planned, strategy)

    def run_once(folder: str, variant: Variant) -> list[Result]:
        with finetuning_flags.using_variant(folder, variant, FLAGS.overwrite and is_single):
            done = None if is_single else finished_results(folder, flags.resolved(), hashes)
            if done is not None:
                print(f"Finished before: {folder}", flush=True)
                return done
            task = finetuning_flags.task()  # Again, because --search may change its settings.
            model, settings = read(InitialModel), finetuning_flags.settings()
            run = shared_flags.run_settings
            try:
                teacher = read(Distillation)
                return finetune(model, task, data, folder, settings, devices, run, teacher)
            finally:
                # All runs share one process: it starts only once, and one owner handles devices and
                # SIGTERM. So free the memory of each run, and reset Keras's names, so that the
                # next run gets the same variable names.
                keras.backend.clear_session()
                gc.collect()

    def run(folder: str, variant: Variant) -> list[Result]:
        def attempt(seed: int) -> list[Result]:
            return run_once(folder, variant._replace(seed=seed))

        return run_until_good(attempt, folder, variant.seed, FLAGS.retries, strategy)

    if planned:
        run_series(FLAGS.output_dir, planned, run, is_chief(strategy))
    else:
        run(FLAGS.output_dir, Variant({}, FLAGS.seed))


if __name__ == "__main__":
    define_flags()
    run_binary(lambda: run_supervised(main, FLAGS.max_failures, finetuning_flags.first_folder()))
