"""The signatures of served models, one file for each task of export."""

from export.signatures.common import DEFAULT_SIGNATURE as DEFAULT_SIGNATURE
