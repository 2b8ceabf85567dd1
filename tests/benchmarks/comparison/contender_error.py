"""The one error that a run goes on after."""


class ContenderError(RuntimeError):
    """A contender cannot do what it was asked; the message says why."""
