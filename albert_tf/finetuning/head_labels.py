"""The classes of an output layer that is taken over: they have to be those of the examples."""

from __future__ import annotations

from collections.abc import Sequence

from albert_tf.checkpoints import formats, huggingface, native
from albert_tf.errors import UserError
from albert_tf.pretrained import locate
from albert_tf.training import InitialModel


def check_head(start: InitialModel, labels: Sequence[str]) -> None:
    """Checks that an output layer that is to be taken over has the classes of the examples.

    Whether it has an output layer of the right shape is seen when it is loaded.

    Args:
      start: the initial model.
      labels: names of the C classes in order; () where the answers are numbers.

    Raises:
      UserError: there is no initial model, or its classes are others, or in another order.
    """
    if not start.init_checkpoint:
        raise UserError(
            "--init_head takes the output layer of --init_checkpoint, which is missing. Name a "
            "fine-tuned model there, or leave --init_head out."
        )
    source = locate(start.init_checkpoint)
    known = _labels_of(source, labels)
    if known is not None and known != list(labels):
        raise UserError(
            f"--init_head: {source.path} knows {', '.join(known) or 'numbers'}, and the examples "
            f"have {', '.join(labels) or 'numbers'}. Leave --init_head out: the encoder alone "
            "does not depend on them."
        )


def _labels_of(source: formats.Source, labels: Sequence[str]) -> list[str] | None:
    """The names of a model's classes in order; None: not known.

    Other names in a Hugging Face folder may be other words for the same classes. The same names, in
    capitals or not, say what they are: there MNLI is often in another order.
    """
    if source.format == "native":
        known = native.read_metadata(source.path).get("labels")
        return None if known is None else list(known)
    if source.format != "huggingface":
        return None
    spelled = {label.lower(): label for label in labels}
    known = [spelled.get(name.lower(), name) for name in huggingface.read_labels(source.path)]
    return known if sorted(known) == sorted(labels) else None
