"""How layers are made fast, mostly on CPUs: everything here can be switched off as a whole."""

from albert_tf.layers.fast.switch import MODES, choose, is_on, switched_off, xla_error

__all__ = ["MODES", "choose", "is_on", "switched_off", "xla_error"]
