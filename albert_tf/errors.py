"""The error and the warning that are meant for the user, and other errors in one line. All packages
share them, so they are defined in `data_pipeline`.
"""

from data_pipeline.errors import UserError, message_of, warn_once

__all__ = ["UserError", "message_of", "warn_once"]
