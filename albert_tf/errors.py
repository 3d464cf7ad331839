"""The error and the warning that are meant for the user, and other errors in one line: those of
`data_pipeline`, since all packages share them.
"""

from data_pipeline.errors import UserError, message_of, warn_once

__all__ = ["UserError", "message_of", "warn_once"]
