"""Pre-training of a model: the experiment that run_pretraining runs."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Sequence

from albert_tf.costs import pretraining_flops_per_token
from albert_tf.models import AlbertPretrainer
from albert_tf.pretraining.data import PretrainingData
from albert_tf.pretraining.evaluation import HeldOut
from albert_tf.pretraining.examples import example_writer
from albert_tf.tasks import PretrainingTask
from albert_tf.training import experiment
from albert_tf.training.experiment import Experiment, ModelFolders, RunSettings


def pretrain(
    model: AlbertPretrainer,
    data: PretrainingData,
    settings: RunSettings,
    eval_data: Sequence[str] = (),
) -> dict[str, float]:
    """Trains a model, keeps the last one and that with the lowest held-out loss.

    Args:
      model: it is trained on the devices of the strategy in whose scope it was made. A run that is
        continued takes its weights from the newest checkpoint.
      data: see `open_records` and `open_text`.
      settings: optimizer, length, folder.
      eval_data: folders of held-out records, at most one for each sentence objective.

    Returns:
      The held-out figures at the end; empty without `eval_data`.

    Raises:
      UserError: see `experiment.run`.
    """
    manifest, config = data.manifest, model.config
    num_steps, model_dir = settings.loop.num_train_steps, os.path.join(settings.output_dir, "model")
    length, predictions = data.max_seq_length, manifest["max_predictions"]
    flops = pretraining_flops_per_token(config, length, predictions)
    passes = "not counted (--train_text)"
    if data.num_examples:
        passes = f"{num_steps * data.batch_size / data.num_examples:.1f}"
    evaluation = {}
    if eval_data:
        held_out = HeldOut(eval_data, settings.eval_batch_size)
        train_manifest = manifest if data.has_statistics else None
        evaluation = {
            "evaluator": held_out.evaluator(model, manifest["vocab_fingerprint"]),
            "examples": example_writer(model, data, held_out),
            "report": functools.partial(held_out.print_results, train_manifest=train_manifest),
        }
    return experiment.run(
        Experiment(
            title="Pre-training",
            task=PretrainingTask(model, data.sentence_objective),
            data=data,
            settings=settings,
            models=_model_folders(data),
            flops_per_token=flops,
            card={
                "training operations": f"{flops / 1e6:,.1f} MFLOP a token",
                "passes over the data": passes,
                "expected first loss": f"{math.log(config.vocab_size) + math.log(2):.2f} "
                "(ln V + ln 2)",
            },
            next_commands=[
                f"python -m albert_tf.run_classifier --init_checkpoint={model_dir} "
                "--train_file=train.tsv --dev_file=dev.tsv --output_dir=...",
                f"python -m export.run_export --model_dir={model_dir} --task=masked_lm "
                "--output_dir=...",
            ],
            **evaluation,
        )
    )


def _model_folders(data: PretrainingData) -> ModelFolders:
    names = ("max_seq_length", "vocab_fingerprint")
    return ModelFolders(
        best="best_model",
        last="model",
        metric="loss",
        higher_is_better=False,
        metadata={name: data.manifest[name] for name in names},
        vocab_file=data.vocab_file,
        tokenizer=data.manifest["tokenizer"],
    )
