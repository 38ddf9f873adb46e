"""A page in headless Chromium, driven by its debugging pipe: no package is needed for it."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

#: Names that Chromium has in different systems; JITTOK_TEST_BROWSER names another.
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find_browser():
    given = os.environ.get("JITTOK_TEST_BROWSER")
    return given or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page. Collects everything that goes wrong in it."""

    def __init__(self, folder, width=1100, height=900, dark=False):
        to_child, self._write = os.pipe()
        self._read, from_child = os.pipe()
        flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--remote-debugging-pipe",
            "--no-first-run",
            "--hide-scrollbars",
            f"--user-data-dir={folder}",
        ]
        # The browser reads from descriptor 3 and writes to descriptor 4.
        start = (
            "import fcntl, os, sys\n"
            "pair = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 50) for number in sys.argv[1:3]]\n"
            "os.dup2(pair[0], 3), os.dup2(pair[1], 4)\n"
            "os.execv(sys.argv[3], sys.argv[3:])"
        )
        command = [sys.executable, "-c", start, str(to_child), str(from_child), find_browser(), *flags]
        self.process = subprocess.Popen(
            command, pass_fds=(to_child, from_child), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_child)
        os.close(from_child)
        self._buffer, self._number, self.events = b"", 0, []
        self._session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)

    def close(self):
        try:
            self._session = None
            self.call("Browser.close")
        except EOFError:
            pass
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self._read)
        os.close(self._write)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        try:
            os.write(self._write, json.dumps(message).encode() + b"\0")
        except BrokenPipeError:
            raise EOFError("the browser has ended") from None
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def _next(self):
        while b"\0" not in self._buffer:
            part = os.read(self._read, 1 << 20)
            if not part:
                raise EOFError("the browser has ended")
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(self, path):
        self.call("Page.navigate", url=Path(path).resolve().as_uri())
        end = time.monotonic() + 30
        while self.run("document.readyState") != "complete":
            assert time.monotonic() < end, "the page does not load"
            time.sleep(0.05)

    def run(self, code):
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def place(self, selector):
        """The middle of an element, scrolled into view."""
        code = (
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}});"
            " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        return self.run(code)

    def hover(self, selector):
        x, y = self.place(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector):
        self.hover(selector)
        x, y = self.place(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path):
        image = self.call("Page.captureScreenshot", format="png")["data"]
        Path(path).write_bytes(base64.b64decode(image))

    def faults(self):
        """Exceptions, errors in the console, and everything that was asked of a network."""
        found = []
        for event in self.events:
            method, given = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(given["exceptionDetails"]["text"])
            elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning", "assert"):
                found.append(str(given["args"]))
            elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
                found.append(given["entry"]["text"])
            elif method == "Network.requestWillBeSent" and not given["request"]["url"].startswith(("file:", "data:")):
                found.append(given["request"]["url"])
        return found
