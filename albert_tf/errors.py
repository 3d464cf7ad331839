"""The error that is meant for the user."""


class UserError(ValueError):
    """A mistake in flags, files or configuration; the message says what to do."""
