"""`ContenderError`: the one error after which a run continues without the contender."""


class ContenderError(RuntimeError):
    """A contender cannot run a command; the message gives the reason."""
