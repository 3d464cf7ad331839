"""google-research/albert's TF1 checkpoints, as in the published tarballs
(`model.ckpt-best.{index,data}`).
"""

from __future__ import annotations

from collections.abc import Sequence

from albert_tf.checkpoints import bundle
from albert_tf.checkpoints.names import variable_names
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras


def load(
    model: keras.Model,
    prefix: str,
    allow_missing: Sequence[str] = (),
    allow_unused: Sequence[str] = (),
) -> list[str]:
    """Fills a model (an AlbertEncoder or one with heads) from a checkpoint of the reference.

    Optimizer slots and the step counter are skipped, a `module/` prefix (TF-Hub) is stripped.

    Args:
      model: has a `config`.
      prefix: path without `.index`; the published archives hold no `checkpoint` file, so a folder
        is not enough.
      allow_missing: regular expressions of our names that may keep their values, e.g.
        ["^classification/"].
      allow_unused: regular expressions of the checkpoint's names that may go unread, e.g.
        ["^cls/"].

    Returns:
      Names of the variables that kept their values.

    Raises:
      UserError: listing every missing, unused or misshapen variable.
    """
    table = variable_names(model.config)
    unknown = [name for name in map(bundle.our_name, model.variables) if name not in table]
    if unknown:
        raise UserError(
            f"parameter_sharing={model.config.parameter_sharing!r} has no counterpart in "
            "google-research's checkpoints, which know sharing by groups only; first variable "
            f"without a name there: {unknown[0]}."
        )
    return bundle.assign(
        model.variables,
        prefix,
        name_of=lambda ours: table[ours].google,
        transposed=lambda ours: table[ours].transposed,
        allow_missing=allow_missing,
        allow_unused=allow_unused,
    )


def is_google(prefix: str) -> bool:
    """Whether a name-keyed checkpoint uses the reference's names."""
    return any(name.startswith("bert/") for name in bundle.read_shapes(prefix))
