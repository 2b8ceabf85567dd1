"""The error of the server for a request that it does not answer."""

# The beginnings of lines in which TensorFlow reports where an error happened.
_NOISE = ("Graph execution error", "Detected at node", "<stack traces", "[[{{node", "(0)", "(1)", "Stack trace for op")


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


def reason(error: Exception) -> str:
    """The line of an error that states what is wrong, without the lines on where it happened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    useful = [line for line in lines if not line.startswith(_NOISE)]
    return (useful or lines or [type(error).__name__])[0][:500]
