"""What `service.py` and `served_model.py` tell who sent a request that cannot be answered."""


class BadRequestError(ValueError):
    """What is wrong with a request, in words for who sent it."""
