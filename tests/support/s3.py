"""An object store that speaks S3, on loopback: moto's server, a process in the environment that `make .venv/s3` makes, or else the one on the path."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from urllib.parse import quote
from urllib.request import Request, urlopen
from xml.etree import ElementTree

_PLACES = (str(Path(sys.prefix) / "s3-server" / "bin"), os.environ.get("PATH", os.defpath))
_PROGRAM = shutil.which("moto_server", path=os.pathsep.join(_PLACES))
THERE = _PROGRAM is not None
_NAMED = "{http://s3.amazonaws.com/doc/2006-03-01/}"


class S3Server:
    """Where it listens, what it holds, and the requests it has answered. It keeps everything in its memory."""

    def __init__(self, folder: Path) -> None:
        assert _PROGRAM is not None
        self._log = folder / "log"
        self._names = count()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [_PROGRAM, "-H", "127.0.0.1", "-p", "0"], stdout=log, stderr=log, cwd=folder
            )
        until = time.monotonic() + 30
        while (listening := re.search(r"Running on (http://\S+)", self.log())) is None:
            assert self._process.poll() is None and time.monotonic() < until, self.log()
            time.sleep(0.02)
        self.url = listening[1]
        self.port = int(self.url.rpartition(":")[2])

    def bucket(self) -> str:
        """The name of an empty bucket."""
        name = f"bucket{next(self._names)}"
        self._asked(name, "PUT")
        return name

    def remove(self, bucket: str) -> None:
        """Remove a bucket, and what is in it."""
        for name in self.objects(bucket):
            self._asked(f"{bucket}/{quote(name)}", "DELETE")
        self._asked(bucket, "DELETE")

    def objects(self, bucket: str) -> dict[str, bytes]:
        """What is in a bucket, by name."""
        listed = ElementTree.fromstring(self._asked(f"{bucket}?list-type=2&max-keys=1000"))
        assert listed.findtext(f"{_NAMED}IsTruncated") == "false"
        names = [str(each.text) for each in listed.iter(f"{_NAMED}Key")]
        return {name: self._asked(f"{bucket}/{quote(name)}") for name in names}

    def log(self) -> str:
        """The requests, one a line: `"PUT /bucket/name HTTP/1.1" 200`."""
        return re.sub(r"\x1b\[[0-9;]*m", "", self._log.read_text(encoding="utf-8"))

    def written(self, bucket: str) -> int:
        """How many objects have been written into a bucket."""
        return len(re.findall(rf'"PUT /{bucket}/\S+ HTTP/1.1" 200', self.log()))

    def _asked(self, path: str, method: str = "GET") -> bytes:
        asked = Request(
            f"{self.url}/{path}", method=method, headers={"Authorization": "AWS tests:not-checked"}
        )
        with urlopen(asked, timeout=20) as answer:
            return bytes(answer.read())

    def stop(self) -> None:
        """End it; what it held is gone."""
        self._process.kill()
        self._process.wait()


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """The server, until the end of the block."""
    made = S3Server(folder)
    try:
        yield made
    finally:
        made.stop()
