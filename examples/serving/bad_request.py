"""The error of `service.py` and `exported_model.py` for a request that cannot be answered."""


class BadRequestError(ValueError):
    """A request is invalid; the message is for its sender."""
