"""Named architectures: the published English ALBERTs, and small ones for trying out."""

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError

_SIZES = {
    "base": dict(
        hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072
    ),
    "large": dict(
        hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096
    ),
    "xlarge": dict(
        hidden_size=2048, num_hidden_layers=24, num_attention_heads=16, intermediate_size=8192
    ),
    "xxlarge": dict(
        hidden_size=4096, num_hidden_layers=12, num_attention_heads=64, intermediate_size=16384
    ),
}


def _published(size: str, version: str) -> AlbertConfig:
    # Version 1 was trained with dropout 0.1, except xxlarge; version 2 without dropout.
    dropout = 0.1 if version == "v1" and size != "xxlarge" else 0.0
    return AlbertConfig(
        vocab_size=30000,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        **_SIZES[size],
    )


PRESETS: dict[str, AlbertConfig] = {
    **{
        f"albert-{size}-{version}": _published(size, version)
        for version in ("v1", "v2")
        for size in _SIZES
    },
    "albert-small": AlbertConfig(
        vocab_size=8000,
        embedding_size=128,
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=1024,
    ),
    "albert-tiny": AlbertConfig(
        vocab_size=8000,
        embedding_size=128,
        hidden_size=128,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=512,
    ),
}


def get_preset(name: str) -> AlbertConfig:
    """The configuration called `name`; an unknown name is an error that lists the known ones."""
    if name not in PRESETS:
        raise UserError(f"preset {name!r} is unknown. Known presets: {', '.join(PRESETS)}.")
    return PRESETS[name]
