"""The error and the warning that are meant for the user, and other errors in a line, for all
packages alike.
"""

from data_pipeline.errors import UserError, message_of, warn_once

__all__ = ["UserError", "message_of", "warn_once"]
