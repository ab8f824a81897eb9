"""A browser without a window, asked over a pipe in Chrome's DevTools protocol:
it is started once, which takes longer than what a page costs."""

import atexit
import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile

import run  # noqa: F401; puts the folder of tap.py into the path
import tap

NAMES = ["chromium", "chromium-browser", "google-chrome", "chrome"]
PROGRAM = next(filter(None, map(shutil.which, NAMES)), None)
SECONDS = 110  # in which it answers, unless it hangs
WINDOW = {"width": 1000, "height": 800, "deviceScaleFactor": 1, "mobile": False}


def pipe():
    """Above the numbers that the browser knows its ends by."""
    return [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in os.pipe()]


class Browser:
    """With a folder of its own, so that no other browser is asked to do it."""

    def __init__(self):
        self.own = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs, self.to = pipe()
        self.answers, answer = pipe()
        self.process = subprocess.Popen(
            [PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe",
             f"--user-data-dir={self.own.name}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(3, 4),
            preexec_fn=lambda: (os.dup2(theirs, 3), os.dup2(answer, 4)),
        )
        os.close(theirs)
        os.close(answer)
        self.numbers = itertools.count(1)
        self.rest = b""
        self.events = []

    def end(self):
        try:
            self.call("Browser.close")
            self.process.wait(SECONDS)
        finally:
            self.process.kill()
            self.own.cleanup()

    def receive(self):
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.answers], [], [], SECONDS)
            more = os.read(self.answers, 1 << 20) if ready else b""
            assert more, f"{PROGRAM} " + ("has ended" if ready else "says nothing")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **params):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def until(self, method):
        while not any(e.get("method") == method for e in self.events):
            self.events.append(self.receive())

    def look(self, path, place):
        """(its elements as text, a picture as PNG, what the console has said)"""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call(
            "Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable", session)
        self.call("Emulation.setDeviceMetricsOverride", session, **WINDOW)
        self.events.clear()
        self.call("Page.navigate", session, url=f"file://{path}#{place}")
        self.until("Page.loadEventFired")
        text = self.call("Runtime.evaluate", session,
                         expression="document.documentElement.outerHTML")
        picture = self.call("Page.captureScreenshot", session, format="png")
        said = [json.dumps(e["params"]) for e in self.events if e.get("method") in (
            "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")]
        self.call("Target.closeTarget", targetId=target)
        return text["result"]["value"], base64.b64decode(picture["data"]), said


_browsers = []


def look(path, place=""):
    if PROGRAM is None:
        raise tap.Skip("no chromium here")
    if not _browsers:
        _browsers.append(Browser())
        atexit.register(_browsers[0].end)
    return _browsers[0].look(path, place)
