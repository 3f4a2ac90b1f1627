"""A model hub of a few lines on loopback, and `huggingface_hub` itself downloading from it in a process of its own."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def is_lfs(name: str) -> bool:
    """Whether the hub keeps a file in git-lfs."""
    return name.endswith((".safetensors", ".bin"))


def git_sha1(body: bytes) -> str:
    """The name that git gives to these bytes."""
    return hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()


def etag(name: str, body: bytes) -> str:
    """The name of a file's blob in a hub cache."""
    return hashlib.sha256(body).hexdigest() if is_lfs(name) else git_sha1(body)


def entry(name: str, body: bytes) -> dict[str, object]:
    """A file in the hub's tree listing."""
    found: dict[str, object] = {"type": "file", "path": name, "size": len(body), "oid": git_sha1(body)}
    if is_lfs(name):
        found["lfs"] = {"oid": hashlib.sha256(body).hexdigest(), "size": len(body), "pointerSize": 134}
    return found


@contextmanager
def hub(repo_id: str, files: Mapping[str, bytes], commit: str = COMMIT) -> Iterator[str]:
    """A hub with one repo at one commit; its address."""
    info = json.dumps({"id": repo_id, "modelId": repo_id, "sha": commit, "siblings": [], "tags": []}).encode()
    tree = json.dumps([entry(name, body) for name, body in files.items()]).encode()

    class Hub(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.answer(with_body=True)

        def do_HEAD(self) -> None:
            self.answer(with_body=False)

        def answer(self, *, with_body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            name = path.removeprefix(f"/{repo_id}/resolve/").partition("/")[2]
            body = files.get(name) if path.startswith(f"/{repo_id}/resolve/") else None
            headers = {}
            if path.startswith(f"/api/models/{repo_id}"):
                body = tree if "/tree/" in path else info
            elif body is not None:
                headers = {"X-Repo-Commit": commit, "ETag": f'"{etag(name, body)}"'}
                if is_lfs(name):
                    headers |= {"X-Linked-Etag": headers["ETag"], "X-Linked-Size": str(len(body))}
            self.send_response(200 if body is not None else 404)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            if with_body and body is not None:
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """A test's output is the test's own."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


_DOWNLOAD = """
import json, sys
from huggingface_hub import snapshot_download
print(snapshot_download(**json.loads(sys.argv[1])))
"""


def download(address: str, home: Path, **options: object) -> str:
    """The folder that `snapshot_download` filled, its cache below `home`, in a process with a clean environment."""
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGINGFACE_"))}
    clean = keep | {"HF_HOME": str(home), "HF_ENDPOINT": address, "HF_HUB_DISABLE_XET": "1", "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", _DOWNLOAD, json.dumps(options)],
        env=clean | {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1]
