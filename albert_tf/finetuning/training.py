"""Fine-tuning: trains a model on a task, and scores its best and its last checkpoint."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence

from albert_tf.analysis.costs import encoder_flops_per_token
from albert_tf.distillation.teacher import Distillation, Learned
from albert_tf.errors import UserError
from albert_tf.finetuning.distillation import distilled
from albert_tf.finetuning.evaluation import ScoreEvaluator
from albert_tf.finetuning.outcome import conclude, next_commands
from albert_tf.finetuning.runs.results import Result
from albert_tf.finetuning.runs.run_files import BEST_MODEL, LAST_MODEL, weights_sha256
from albert_tf.finetuning.tasks.base import Task, TaskData
from albert_tf.finetuning.tasks.table import get_task
from albert_tf.finetuning.training_examples import (
    TrainingExamples,
    check_trainable,
    make_examples,
    read_split,
    read_training_records,
)
from albert_tf.keras_compat import keras
from albert_tf.machine.targets import shapes_must_be_static
from albert_tf.optimization import Recipe
from albert_tf.pretrained import presets
from albert_tf.pretrained.loading import locate
from albert_tf.training import (
    DeviceSettings,
    InitialModel,
    LoopSettings,
    OptimizerSettings,
    RunSettings,
)
from albert_tf.training.devices import Devices, prepare_devices
from albert_tf.training.experiment import Experiment, ModelFolders, TrainingData
from albert_tf.training.running import run_experiment
from data_pipeline.finetuning.batches import LENGTH_WINDOW, finetuning_dataset
from data_pipeline.finetuning.examples import Split
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.settings import Settings, setting
from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.loading import load_tokenizer


@dataclasses.dataclass(frozen=True)
class FineTuningSettings(Settings):
    """The settings of a fine-tuning run; the defaults suit tasks of some thousand examples.

    Fields without a help text share flags of OptimizerSettings, of tokenizers and of the run.
    """

    learning_rate: float = 2e-5
    train_batch_size: int = 32
    num_train_epochs: float = setting(
        3.0, "Number of passes over the training examples.", at_least=0.001, at_most=10_000
    )
    num_train_steps: int | None = setting(
        None, "Number of updates, instead of --num_train_epochs.", at_least=1, expert=True
    )
    warmup_proportion: float = setting(
        0.1, "Share of the updates during which the learning rate rises.", at_most=1, expert=True
    )
    num_warmup_steps: int | None = setting(
        None, "Number of warm-up updates; overrides --warmup_proportion.", expert=True
    )
    lengths: LengthSettings = dataclasses.field(default_factory=LengthSettings)
    classifier_dropout: float = setting(
        0.1, "Dropout before the output layer.", at_most=0.99, expert=True
    )
    hidden_dropout: float | None = setting(
        None,
        "Dropout of the encoder's hidden states; by default the model configuration's.",
        at_most=0.99,
        expert=True,
    )
    attention_dropout: float | None = setting(
        None, "Attention dropout; by default the model configuration's.", at_most=0.99, expert=True
    )
    init_head: bool = setting(
        False,
        "Also load the output layer of --init_checkpoint, which must have the same classes.",
        expert=True,
    )
    vocab_file: str | None = None  # None: the vocabulary of the initial model.
    lower_case: bool | None = None
    strip_accents: bool | None = None
    space_chinese: bool | None = None
    length_window: int = setting(
        LENGTH_WINDOW,
        "Number of batches whose examples are sorted by length together, for speed; 1: random "
        "order.",
        at_least=1,
        expert=True,
    )
    seed: int = 0  # Of the output layer, the order of examples, and dropout.

    def recipe(self, num_examples: int) -> Recipe:
        """Learning rate, updates and warm-up for this number of examples."""
        num_steps = self.num_train_steps
        if num_steps is None:
            # Fewer examples than a batch still make one update.
            num_steps = max(1, int(num_examples * self.num_train_epochs / self.train_batch_size))
        warmup = self.num_warmup_steps
        if warmup is None:
            warmup = int(num_steps * self.warmup_proportion)
        return Recipe(self.learning_rate, num_steps, warmup)


def finetune(
    model: str | InitialModel,
    task: str | Task,
    data: str | TaskData,
    output_dir: str,
    settings: FineTuningSettings | None = None,
    devices: Devices | None = None,
    run_settings: Callable[[Recipe], RunSettings] | None = None,
    distillation: Distillation | None = None,
) -> list[Result]:
    """Trains a model on a task; keeps the best model on the dev set and the last one.

    Args:
      model: the name or path of the model that encoder and vocabulary come from, see
        --init_checkpoint.
      task: its name, see --task, or a Task.
      data: the folder of the task's data.
      output_dir: folder of the run; a run found there is continued.
      settings: None: the defaults, with a learning rate of 1e-4 for "albert-small-en".
      devices: None: all of this machine.
      run_settings: learning rate, updates and warm-up -> the other settings of the run; None: AdamW
        as in the reference, evaluated at the end.
      distillation: a teacher, and what is learned from it besides the labels or instead of them.

    Returns:
      The scores of each dev split, which are also in results.json.

    Raises:
      UserError: data, model and settings do not go together, or see `run_experiment`.
    """
    start = InitialModel(init_checkpoint=model) if isinstance(model, str) else model
    task = get_task(task)
    # Small models need higher learning rates than published ones, see docs/finetuning.md.
    rate = 1e-4 if model == "albert-small-en" else FineTuningSettings.learning_rate
    settings = settings or FineTuningSettings(learning_rate=rate)
    devices = devices or prepare_devices(DeviceSettings())
    data = TaskData(data) if isinstance(data, str) else data

    # All data are read and checked before a model is made, so that errors come early.
    splits = _read_all(task, data)
    tokenizer = load_tokenizer(
        start.chosen_vocabulary(settings.vocab_file),
        settings.lower_case,
        strip_accents=settings.strip_accents,
        space_chinese=settings.space_chinese,
    )
    if data.train_records:
        training = read_training_records(data.train_records, task, tokenizer, settings.lengths)
    else:
        training = make_examples(task, splits[task.train_split], tokenizer, settings.lengths)
    labels = training.labels
    dev = {
        name: task.features(splits[name], tokenizer, settings.lengths, labels, with_targets=True)
        for name in task.dev_splits
    }
    # Before the objective and the evaluator, which need the loss and the score chosen here.
    task = task.for_training(training.features, dev[task.dev_splits[0]])
    scored = {name: splits[name].sha256() for name in task.dev_splits}
    recipe = settings.recipe(len(training))
    run = (run_settings or functools.partial(_default_run, output_dir))(recipe)
    preset = _preset_of(start)
    # Immediately before building the model: the random output layer depends only on the seed.
    keras.utils.set_random_seed(settings.seed)
    trained = new_model(start, task, tokenizer, labels, settings, devices)
    learned, training = distilled(distillation, task, trained, training, tokenizer)
    evaluator = ScoreEvaluator(task, trained, dev, run.eval_batch_size)
    flops_per_token = encoder_flops_per_token(trained.config, settings.lengths.max_seq_length)
    hashes = {task.train_split: training.sha256}
    given = start.init_checkpoint
    init_sha256 = weights_sha256(locate(given)) if given else None
    origin = {"seed": settings.seed, "preset": preset, "init_sha256": init_sha256}
    results: list[Result] = []

    def score_and_write() -> None:
        found = conclude(task, trained, evaluator, labels, splits, run.output_dir, hashes, origin)
        results.extend(found)

    run_experiment(
        Experiment(
            title=f"Fine-tuning: {task.name}",
            objective=learned.objective,
            model_to_keep=trained,
            data=_training_data(training, scored, tokenizer, task, settings, run, devices, learned),
            settings=run,
            models=_model_folders(task, data, tokenizer, labels, settings, preset),
            flops_per_token=3 * flops_per_token,  # A backward pass costs two forward passes.
            evaluator=evaluator,
            card={**_card(task, recipe, training, settings), **learned.card},
            next_commands=functools.partial(next_commands, task, data, run.output_dir, labels),
        ),
        score_and_write,
    )
    return results


def _default_run(output_dir: str, recipe: Recipe) -> RunSettings:
    return RunSettings(
        output_dir,
        OptimizerSettings("adamw", recipe.learning_rate, recipe.num_warmup_steps),
        LoopSettings(recipe.num_train_steps),
    )


def _read_all(task: Task, data: TaskData) -> dict[str, Split]:
    """The examples of the dev splits and, unless they are records, the training examples."""
    check_trainable(task)
    if not data.train_records:
        splits = {task.train_split: read_split(task, data, task.train_split)}
    elif task.train_split in (*data.files, *data.splits):
        raise UserError(
            f"--train_records={data.train_records} names the training examples, and "
            f"--{task.train_split}_file names others. Leave one of them out."
        )
    else:
        splits = {}
    return {**splits, **{name: read_split(task, data, name) for name in task.dev_splits}}


def new_model(
    start: InitialModel,
    task: Task,
    tokenizer: Tokenizer,
    labels: Sequence[str],
    settings: FineTuningSettings,
    devices: Devices,
) -> keras.Model:
    """The model to train, with the initial model's encoder and pooler; its output layer is random,
    unless `settings.init_head`.
    """
    if settings.init_head:
        check_head(start, labels)
    config = start.config(
        tokenizer.vocab_size, settings.lengths.max_seq_length, tokenizer.vocab_file
    )
    rates = {
        "hidden_dropout_prob": settings.hidden_dropout,
        "attention_probs_dropout_prob": settings.attention_dropout,
    }
    config = config.replace(**{name: rate for name, rate in rates.items() if rate is not None})
    with devices.strategy.scope():
        model = task.new_model(config, labels, settings.classifier_dropout, devices.packed)
        if settings.init_head:
            start.load_weights(model)  # Refuses weights without an output layer of this shape.
        else:
            start.load_start(model)
    return model


def check_head(start: InitialModel, labels: Sequence[str]) -> None:
    """Raises UserError unless the output layer of the initial model has these classes, in order.

    Its shape is checked when it is loaded.
    """
    if not start.init_checkpoint:
        raise UserError(
            "--init_head loads the output layer of --init_checkpoint, which is missing. Name a "
            "fine-tuned model there, or leave --init_head out."
        )
    checkpoint = locate(start.init_checkpoint)
    if not checkpoint.has_labels(labels):
        known = ", ".join(checkpoint.labels_as(labels) or ()) or "numbers"
        raise UserError(
            f"--init_head: {checkpoint.path} was trained on {known}, and the "
            f"examples have {', '.join(labels) or 'numbers'}. Leave --init_head out, to load only "
            "the encoder."
        )


def _training_data(
    training: TrainingExamples,
    scored: Mapping[str, str],
    tokenizer: Tokenizer,
    task: Task,
    settings: FineTuningSettings,
    run: RunSettings,
    devices: Devices,
    learned: Learned,
) -> TrainingData:
    """The training examples as the data of a run, with everything that must be the same when it is
    resumed.

    `scored`: split -> hash of the examples that the run is scored on.
    """
    with devices.strategy.scope():
        # XLA and TPUs recompile for each shape; the scope tells whether this is for a TPU.
        is_static = run.jit_compile or shapes_must_be_static()
    return TrainingData(
        name=training.name,
        batches=functools.partial(
            finetuning_dataset,
            training.features,
            settings.train_batch_size,
            seed=settings.seed,
            static_shapes=is_static,
            length_window=settings.length_window,
        ),
        batch_size=settings.train_batch_size,
        seed=settings.seed,
        num_examples=len(training),
        max_seq_length=training.features.max_seq_length,
        vocab_size=tokenizer.vocab_size,
        must_not_change={
            "task": task.name,
            "labels": list(training.labels),  # A list, as JSON returns it.
            "num_examples": len(training),
            "vocab_fingerprint": tokenizer.fingerprint,
            **dataclasses.asdict(tokenizer.settings),
            "examples": training.content_sha256,
            "scored_examples": dict(scored),  # They decide which checkpoint is best.
            "length_window": settings.length_window,  # The order of examples depends on it.
            **task.answer_settings,
            **learned.must_not_change,
        },
        tokens_per_example=training.features.mean_tokens(),
    )


def _model_folders(
    task: Task,
    data: TaskData,
    tokenizer: Tokenizer,
    labels: Sequence[str],
    settings: FineTuningSettings,
    preset: str | None,
) -> ModelFolders:
    """The folders of the best model and the last one."""
    data_settings = dict(task.data_settings)
    if task.train_split in data.splits:  # Examples in memory have no columns.
        data_settings.pop("pair_column", None)
    return ModelFolders(
        best=BEST_MODEL,
        last=LAST_MODEL,
        metric=task.key,
        higher_is_better=True,
        metadata={
            "finetuned_on": task.name,
            "labels": list(labels),
            **({"preset": preset} if preset else {}),
            "vocab_fingerprint": tokenizer.fingerprint,
            **dataclasses.asdict(settings.lengths),
            "data_settings": data_settings,
            **task.answer_settings,
        },
        vocab_file=tokenizer.vocab_file,
        tokenizer=dataclasses.asdict(tokenizer.settings),
        result=BEST_MODEL,
    )


def _card(
    task: Task, recipe: Recipe, training: TrainingExamples, settings: FineTuningSettings
) -> dict[str, str]:
    """The figures of fine-tuning on the start-up card, by name."""
    labels = training.labels
    batch, examples = settings.train_batch_size, len(training)
    tokens = training.features.mean_tokens()
    passes = recipe.num_train_steps * batch / examples
    card = {
        "tokens per update": f"{batch * tokens:,.0f} ({batch} x {tokens:.0f} without padding)",
        "updates": f"{recipe.num_train_steps} ({passes:.1f} passes over {examples} examples)",
    }
    if labels:
        shown = ", ".join(labels[:8]) + (", ..." if len(labels) > 8 else "")
        card["classes"] = f"{len(labels)}: {shown}"
        # An untrained output layer gives all outcomes about the same probability.
        outcomes = task.num_outcomes(labels)
        card["expected first loss"] = f"{math.log(outcomes):.2f} (ln {outcomes})"
    return card


def _preset_of(start: InitialModel) -> str | None:
    """The name of the published model that a run starts from, even via another fine-tuning."""
    if not start.init_checkpoint:
        return None
    for name in (start.init_checkpoint, start.preset):
        if name in presets.PRESETS:
            return name
    # A model that was already fine-tuned, on another task, stores what it started from.
    return locate(start.init_checkpoint).metadata().get("preset")
