"""The error that is meant for the user; one class for all packages of the project."""

from data_pipeline.errors import UserError

__all__ = ["UserError"]
