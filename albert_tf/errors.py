"""The error and the warning for users, and a helper that shortens other errors to one line. All
packages share them, so they are defined in `data_pipeline`.
"""

from data_pipeline.errors import UserError, message_of, warn_once

__all__ = ["UserError", "message_of", "warn_once"]
