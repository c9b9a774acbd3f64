"""A gateway with SQLite on a free port, and servers that misbehave on purpose."""

from __future__ import annotations

import http.server
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO


def program() -> str | None:
    """Returns the gateway's program, or None if there is none."""
    return os.environ.get("WINDROW_BIN") or shutil.which("windrow")


def _drain(output: IO[str]) -> None:
    with output:
        for _ in output:
            pass


class Gateway:
    """The program, its database and its port, which stays the same after `restart`."""

    def __init__(self, *options: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._options = options
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        binary = program()
        assert binary is not None
        path = Path(self._folder.name) / "rows.db"
        command = [binary, "serve", "--to", f"sqlite:{path}", "--create-tables", "true"]
        command += ["--http", f"127.0.0.1:{self.port}", *self._options]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            listening = re.search(r"http listening on http://127\.0\.0\.1:(\d+)", line)
            if listening:
                self.port = int(listening[1])
                break
        else:
            raise AssertionError("the gateway did not start")
        self._reader = threading.Thread(target=_drain, args=(self._process.stdout,), daemon=True)
        self._reader.start()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def close(self) -> None:
        self.kill()
        self._folder.cleanup()


class CuttingProxy:
    """Forwards requests, and loses as many answers as it is told to."""

    def __init__(self, port: int, cuts: int) -> None:
        self._to = port
        self.cuts = cuts
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._to))
            self._open += [client, server]
            for ends in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, is_answer: bool) -> None:
        try:
            while data := source.recv(65536):
                if is_answer and self.cuts > 0:
                    self.cuts -= 1
                    break
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self) -> None:
        for end in [self._listener, *self._open]:
            end.close()


class Script:
    """A server that gives the answers it was given, one after the other."""

    def __init__(self, answers: Sequence[tuple[int, dict[str, str], str]]) -> None:
        self.keys: list[str | None] = []
        rest = list(answers)
        script = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                script.keys.append(self.headers["Idempotency-Key"])
                status, headers, body = rest.pop(0)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
