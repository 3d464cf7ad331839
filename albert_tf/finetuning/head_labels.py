"""The classes of an output layer that is taken over: the examples must have the same."""

from __future__ import annotations

from collections.abc import Sequence

from albert_tf.errors import UserError
from albert_tf.pretrained.loading import locate
from albert_tf.training import InitialModel


def check_head(start: InitialModel, labels: Sequence[str]) -> None:
    """Checks that an output layer that is to be taken over has the classes of the examples.

    Whether it has an output layer of the right shape is seen when it is loaded.

    Args:
      start: the initial model.
      labels: names of the C classes in order; () where the answers are numbers.

    Raises:
      UserError: there is no initial model, or it has other classes, or another order of them.
    """
    if not start.init_checkpoint:
        raise UserError(
            "--init_head takes the output layer of --init_checkpoint, which is missing. Name a "
            "fine-tuned model there, or leave --init_head out."
        )
    source = locate(start.init_checkpoint)
    known = source.labels_as(labels)
    if known is not None and known != list(labels):
        raise UserError(
            f"--init_head: {source.path} knows {', '.join(known) or 'numbers'}, and the examples "
            f"have {', '.join(labels) or 'numbers'}. Leave --init_head out: the encoder alone "
            "does not depend on them."
        )
