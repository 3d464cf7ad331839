"""The signatures of served models, one file per export task."""

from export.signatures.common import DEFAULT_SIGNATURE as DEFAULT_SIGNATURE
