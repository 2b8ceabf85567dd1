"""Runs the application of `service.py` in a thread of this process, without BentoML."""

import contextlib
import socket
import threading
import time

import uvicorn


@contextlib.contextmanager
def serving(application):
    """The address of a server for an ASGI application."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(application, log_config=None, lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        end = time.monotonic() + 30
        while not server.started:
            assert time.monotonic() < end, "no server"
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)
