"""A HuggingFace hub on this machine, with the few addresses that huggingface_hub requests for a download."""

import hashlib
import json
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MAIN, OLD = "c0ffee" * 6 + "0001", "c0ffee" * 6 + "0000"


class Hub:
    """Repositories in memory, served on 127.0.0.1.

    `files` of a repository is name -> bytes; `large` names those in large file storage. `broken` maps a name to the
    bytes that are sent in place of the file's own; `requests` lists what was asked.
    """

    def __init__(self):
        self.repositories, self.requests = {}, []
        handler = type("Handler", (_Handler,), {"hub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        serve = self._server.serve_forever
        self._thread = threading.Thread(target=serve, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def add(self, name, files, *, large=(), gated=False, revisions=None):
        revisions = {"main": MAIN, MAIN: MAIN, "v1": OLD, OLD: OLD} if revisions is None else revisions
        self.repositories[name] = {
            "files": dict(files),
            "large": set(large),
            "gated": gated,
            "revisions": revisions,
            "broken": {},
        }
        return self.repositories[name]

    def downloads(self):
        """Names of the files whose content was asked for."""
        return sorted(
            path.partition("/resolve/")[2].partition("/")[2]
            for method, path in self.requests
            if method == "GET" and "/resolve/" in path
        )

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def git_hash(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self._answer()

    def do_GET(self):
        self._answer()

    def _answer(self):
        path = urllib.parse.urlsplit(self.path).path
        self.hub.requests.append((self.command, urllib.parse.unquote(path)))
        if path.startswith("/api/models/"):
            self._api([urllib.parse.unquote(part) for part in path.removeprefix("/api/models/").split("/")])
        else:
            name, _, rest = path.removeprefix("/").partition("/resolve/")
            revision, _, file = rest.partition("/")
            self._file(name, urllib.parse.unquote(revision), urllib.parse.unquote(file))

    def _api(self, parts):
        name, rest = "/".join(parts[:2]), parts[2:]
        repository = self.hub.repositories.get(name)
        revision = rest[1] if rest else "main"
        if self._refused(repository, revision):
            return
        entries = [self._entry(repository, file) for file in repository["files"]]
        if rest[:1] == ["tree"]:
            self._send(json.dumps([{"type": "file", "path": entry.pop("rfilename"), **entry} for entry in entries]))
        else:
            blobs = [{"blobId": entry.pop("oid"), **entry} for entry in entries]
            self._send(json.dumps({"id": name, "sha": repository["revisions"][revision], "siblings": blobs}))

    def _entry(self, repository, file):
        content = repository["files"][file]
        entry = {"rfilename": file, "size": len(content), "oid": git_hash(content)}
        if file in repository["large"]:
            digest = hashlib.sha256(content).hexdigest()
            entry["lfs"] = {"sha256": digest, "oid": digest, "size": len(content), "pointerSize": 130}
        return entry

    def _file(self, name, revision, file):
        repository = self.hub.repositories.get(name)
        if self._refused(repository, revision, content=True):
            return
        if file not in repository["files"]:
            self._send("", status=404, **{"X-Error-Code": "EntryNotFound"})
            return
        entry = self._entry(repository, file)
        etag = entry["lfs"]["sha256"] if "lfs" in entry else entry["oid"]
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": repository["revisions"][revision]}
        self._send(repository["broken"].get(file, repository["files"][file]), **headers)

    def _refused(self, repository, revision, content=False):
        if repository is None:
            self._send("", status=401, **{"X-Error-Code": "RepoNotFound"})
        elif content and repository["gated"]:
            self._send("", status=401, **{"X-Error-Code": "GatedRepo"})
        elif revision not in repository["revisions"]:
            self._send("", status=404, **{"X-Error-Code": "RevisionNotFound"})
        else:
            return False
        return True

    def _send(self, content, status=200, **headers):
        content = content.encode() if isinstance(content, str) else content
        self.send_response(status)
        for key, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)
