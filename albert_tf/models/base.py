"""The Keras side of all models: construction, configuration, dtype, frozen parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

import albert_tf
from albert_tf.analysis.machine_memory import check_weights_fit
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras, require_keras_2
from albert_tf.models.inputs import lists_to_tensors
from albert_tf.variable_names import distinct

# Entries of `get_config` that every model has; subclasses add their own.
COMMON_SETTINGS = ("config", "packed", "name", "dtype", "trainable", "frozen")


class AlbertModel(keras.Model):
    """A Keras model made from an AlbertConfig. The constructor creates all variables; their names
    do not depend on the model's name.
    """

    # The class's name in model.json, which tells checkpoints the heads; "" for a class that is
    # never saved to a model folder.
    saved_as: str = ""
    # Constructor arguments that are stored as attributes, and that `get_config` adds to those of
    # every model.
    settings: tuple[str, ...] = ()

    def __init__(
        self,
        config: AlbertConfig | dict[str, Any],
        packed: bool | None = None,
        name: str | None = None,
        dtype: str | keras.mixed_precision.Policy | None = None,
        trainable: bool = True,
    ) -> None:
        """
        Args:
          config: the architecture, also as a dict of its fields.
          packed: whether dense layers skip padding; None: where that is faster, on CPUs.
          name: the name of the Keras model; variables are not named after it.
          dtype: the Keras policy of all parts, e.g. "mixed_bfloat16"; None takes the global one.
          trainable: False freezes all variables.
        """
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        if isinstance(config, Mapping):
            config = AlbertConfig.from_dict(config)
        if not isinstance(config, AlbertConfig):
            raise UserError(
                f"Expected an AlbertConfig or a dict of its fields; received {config!r:.80}. For "
                f"published weights: {type(self).__name__}.from_preset(NAME, ...)."
            )
        check_weights_fit(config)
        self.config = config
        self.packed = packed
        self._frozen_when_made: frozenset[str] = frozenset()

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        # Before Keras sees the inputs, because it treats a list as a structure of scalars.
        return super().__call__(lists_to_tensors(inputs), *args, **kwargs)

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: the constructor has created every variable."""
        # This way a model can be loaded from a checkpoint, have its parameters counted, and get an
        # optimizer before its first call.

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shapes of the outputs; `input_shape` is one shape, or a dict of them by input."""

        # Keras's own method would call the model with float32 ids.
        def placeholder(shape: Any) -> Any:
            shape = tf.TensorShape(shape)
            return keras.Input(shape[1:], shape[0], dtype=tf.int32)

        if isinstance(input_shape, Mapping):
            outputs = self({name: placeholder(shape) for name, shape in input_shape.items()})
        else:
            outputs = self(placeholder(input_shape))
        return tf.nest.map_structure(lambda output: output.shape, outputs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Keras's `compile`, which here also creates the optimizer's variables."""
        require_keras_2(args[0] if args else kwargs.get("optimizer"))
        # Loading a SavedModel has put the saved moments into self.optimizer. Keras's compile
        # replaces it by a new optimizer; the moments are copied over below.
        restored = self.optimizer
        if kwargs.get("from_serialized"):
            # Keras passes this when it loads a SavedModel of a compiled model. By then it has made
            # all parts of a trainable model trainable, even those that were frozen.
            self._freeze()
        super().compile(*args, **kwargs)
        if not hasattr(self.optimizer, "build"):  # Keras's legacy optimizers lack it.
            return
        # Otherwise `fit` creates them while tracing its first step, and then traces it again.
        with self.distribute_strategy.scope():
            self.optimizer.build(self.trainable_variables)
        if kwargs.get("from_serialized") and restored is not None:
            _assign_by_name(self.optimizer.variables, restored.variables)

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles with what `get_compile_config` returned."""
        # Keras's own method does nothing for a class that overrides `compile`, so a model
        # loaded from a `.keras` file would lack its optimizer.
        self.compile(**keras.saving.deserialize_keras_object(config))

    def summary(self, *args: Any, expand_nested: bool = True, **kwargs: Any) -> None:
        """Prints Keras's table with the encoder's parts, and how the layers share weights."""
        super().summary(*args, expand_nested=expand_nested, **kwargs)
        (kwargs.get("print_fn") or print)(_describe_stack(self.config))

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, and `frozen`: the names of parts ("encoder") and of their
        parts ("encoder/embeddings") that are not trainable although what contains them is.
        """
        # They stay frozen in `.keras` files and in SavedModels of compiled models. When loading
        # any other SavedModel, Keras makes every part trainable.
        frozen = [name for name, part in _parts(self) if not part.trainable]
        return {
            "config": self.config.to_dict(),
            "packed": self.packed,
            "name": self.name,
            "dtype": self.dtype_policy.name,
            "trainable": self.trainable,
            "frozen": frozen if self.trainable else [],
            **{name: getattr(self, name) for name in self.settings},
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> AlbertModel:
        """A model with random weights from what `get_config` returned."""
        arguments = dict(config)
        frozen = frozenset(arguments.pop("frozen", []))
        model = cls(AlbertConfig.from_dict(arguments.pop("config")), **arguments)
        model._frozen_when_made = frozen
        model._freeze()
        return model

    def _freeze(self) -> None:
        """Makes the parts not trainable that were not when the model was made."""
        for name, part in _parts(self):
            if name in self._frozen_when_made:
                part.trainable = False

    @classmethod
    def from_preset(
        cls, name_or_path: str, *, config: AlbertConfig | None = None, **arguments: Any
    ) -> AlbertModel:
        """A model of this class with published weights, or your own, and new heads.

        >>> AlbertClassifier.from_preset("albert-base-v2", num_classes=3)

        It takes the arguments of the function `albert_tf.from_preset`, and raises its errors.
        """
        # Through the package's lazy table, because `pretrained` itself imports the models.
        return albert_tf.from_preset(name_or_path, cls, config=config, **arguments)


def _describe_stack(config: AlbertConfig) -> str:
    """A sentence on how the layers share their weights."""
    inner = config.inner_group_num
    layers = f"{config.num_hidden_layers} layers" + (f" of {inner} inner ones" * (inner > 1))
    numbers = {"attention": config.num_attention_groups, "feed-forward": config.num_ffn_groups}
    blocks = [
        f"{number * inner} {kind} block{'s' * (number * inner > 1)}"
        for kind, number in numbers.items()
    ]
    return f"The transformer's {layers} use {' and '.join(blocks)}."


def _assign_by_name(variables: Sequence[tf.Variable], values: Sequence[tf.Variable]) -> None:
    """Assigns each value to the variable of the same name; other variables keep theirs."""
    by_name = dict(zip(distinct([value.name for value in values]), values))
    for name, variable in zip(distinct([each.name for each in variables]), variables):
        if name in by_name:
            variable.assign(by_name[name])


def _parts(model: keras.Model, prefix: str = "") -> Iterator[tuple[str, keras.layers.Layer]]:
    """The parts of a model, and of the trainable models in it, by their names."""
    for part in model.layers:
        yield f"{prefix}{part.name}", part
        if isinstance(part, keras.Model) and part.trainable:
            yield from _parts(part, f"{prefix}{part.name}/")
