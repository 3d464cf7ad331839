"""Models of this project as Keras 3 layers, which can be trained, saved and loaded in its models.

Requires Keras 3 with the TensorFlow backend; the wrapped models remain Keras 2.
"""

from __future__ import annotations

from typing import Any

import keras as keras_3

from albert_tf.errors import UserError
from albert_tf.keras_compat import keras as keras_2
from albert_tf.models import AlbertModel
from albert_tf.variable_names import variable_name

__all__ = ["AlbertLayer", "AlbertTextLayer"]

_backend = keras_3.backend.backend()
if not keras_3.__version__.startswith("3.") or _backend != "tensorflow":
    raise ImportError(
        "albert_tf.keras3 needs Keras 3 with KERAS_BACKEND=tensorflow; `import keras` gives "
        f"{keras_3.__version__} with {_backend}. Keras 3 comes with TensorFlow 2.16 and later."
    )


@keras_3.saving.register_keras_serializable("albert_tf")
class AlbertLayer(keras_3.layers.Layer):
    """A Keras 3 layer around a model of this project; the model's variables become the layer's.

        albert = AlbertLayer(AlbertEncoder.from_preset("albert-base-v2"))
        logits = keras.layers.Dense(2)(albert(inputs)["pooled_output"])

    Inputs and outputs are those of the model, which computes in its own dtype policy. XLA compiles
    it only if `compile` is told to.
    """

    def __init__(self, model: AlbertModel, **kwargs: Any) -> None:
        """The layer of a model.

        Args:
          model: an encoder or a model with a head; frozen parts stay frozen.
          kwargs: arguments of keras.layers.Layer.

        Raises:
          UserError: `model` is not a model of this project.
        """
        super().__init__(**kwargs)
        if not isinstance(model, AlbertModel):
            raise UserError(
                f"{type(self).__name__} takes a model of albert_tf, such as AlbertEncoder; "
                f"received {model!r:.80}."
            )
        # Not tracked: otherwise `export` would save the model a second time, as a Keras 2 model.
        object.__setattr__(self, "model", model)
        self.supports_jit = False  # Dense layers skip padding, which makes shapes dynamic.
        trainable = {id(variable) for variable in model.trainable_variables}
        for variable in model.variables:
            # Keras 3 wraps the same variable, so both Keras versions see the same values.
            own = keras_3.Variable(
                initializer=variable,
                trainable=id(variable) in trainable,
                dtype=variable.dtype.name,
                shape=variable.shape,
                name=variable_name(variable).replace("/", "_"),
            )
            self._track_variable(own)
        self.built = True

    def call(self, inputs: Any, training: bool | None = False) -> Any:
        """The outputs of the model."""
        return self.model(inputs, training=bool(training))

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments; Keras saves the values of the weights itself."""
        config = {"model": keras_2.saving.serialize_keras_object(self.model)}
        return {**super().get_config(), **config}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> AlbertLayer:
        """The layer from what `get_config` returned, with random weights."""
        parts: dict[str, Any] = {
            name: keras_2.saving.deserialize_keras_object(config[name])
            for name in ("model", "preprocessor")
            if name in config
        }
        return cls(**{**config, **parts})


@keras_3.saving.register_keras_serializable("albert_tf")
class AlbertTextLayer(AlbertLayer):
    """An AlbertLayer for texts: string [B], or a pair of such tensors."""

    def __init__(self, model: AlbertModel, preprocessor: Any, **kwargs: Any) -> None:
        """The layer of a model for text.

        Args:
          model: see AlbertLayer.
          preprocessor: an AlbertPreprocessor; it and its vocabulary are saved with the layer.
          kwargs: arguments of keras.layers.Layer.
        """
        super().__init__(model, **kwargs)
        self.preprocessor = preprocessor

    def call(self, inputs: Any, training: bool | None = False) -> Any:
        """The outputs of the model for the texts."""
        return super().call(self.preprocessor(inputs), training)

    def get_config(self) -> dict[str, Any]:
        """See AlbertLayer."""
        config = {"preprocessor": keras_2.saving.serialize_keras_object(self.preprocessor)}
        return {**super().get_config(), **config}
