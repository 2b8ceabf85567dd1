"""The error of the server for a request that it does not answer."""


class RequestError(ValueError):
    """A request is not answered; the message is for its sender.

    Args:
        message: what is wrong. It may quote the request, so it is not written to the log.
        status: the HTTP status.
        code: one word for it, for programs, the log and the metrics.
    """

    def __init__(self, message: str, *, status: int = 400, code: str = "invalid"):
        super().__init__(message)
        self.status = status
        self.code = code
