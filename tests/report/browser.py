# SPDX-License-Identifier: BSD-3-Clause
# A Chromium without a window, driven through two pipes by the DevTools protocol: one start for all pages, real keys, and what the
# console has. No module beside Python's own.
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def program():
    return next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)


class Browser:
    def __init__(self, limit):
        self.limit = limit
        self.folder = tempfile.mkdtemp(prefix="trunkline-browser-")
        theirs_in, self.out = os.pipe()
        self.inn, theirs_out = os.pipe()

        # The protocol is on descriptors 3 and 4.
        def place():
            inn, out = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(inn, 3)
            os.dup2(out, 4)

        self.process = subprocess.Popen(
            [program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions",
             "--disable-background-networking", "--disable-dev-shm-usage", "--user-data-dir=" + self.folder, "--remote-debugging-pipe", "about:blank"],
            preexec_fn=place, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.number = 0
        self.left = b""
        self.events = []
        target = self.ask("Target.createTarget", {"url": "about:blank"}, None)["targetId"]
        self.session = self.ask("Target.attachToTarget", {"targetId": target, "flatten": True}, None)["sessionId"]
        for part in "Page", "Runtime", "Log":
            self.ask(part + ".enable")

    def message(self):
        until = time.monotonic() + self.limit
        while b"\0" not in self.left:
            if not select.select([self.inn], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError("Chromium is silent")
            more = os.read(self.inn, 1 << 20)
            if not more:
                raise EOFError("Chromium has ended")
            self.left += more
        text, self.left = self.left.split(b"\0", 1)
        return json.loads(text)

    def ask(self, method, params=None, session=""):
        self.number += 1
        question = {"id": self.number, "method": method, "params": params or {}}
        if session is not None:
            question["sessionId"] = self.session
        os.write(self.out, json.dumps(question).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(method + ": " + answer["error"]["message"])
                return answer["result"]
            self.events.append(answer)

    def open(self, path, width, dark=False):
        self.events = []
        self.ask("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.ask("Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
        self.ask("Page.navigate", {"url": "file://" + path})
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.message())

    def run(self, script):
        answer = self.ask("Runtime.evaluate", {"expression": script, "returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:500])
        return answer["result"].get("value")

    def press(self, key, text=None):
        for kind in "keyDown", "keyUp":
            event = {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": {"Tab": 9}.get(key, 0)}
            if text and kind == "keyDown":
                event["text"] = text
            self.ask("Input.dispatchKeyEvent", event)

    # What the console has, and exceptions
    def complaints(self):
        found = []
        for event in self.events:
            params = event.get("params", {})
            if event.get("method") == "Log.entryAdded":
                found.append(params["entry"]["text"])
            elif event.get("method") == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"]["text"])
            elif event.get("method") == "Runtime.consoleAPICalled":
                found.append(json.dumps(params["args"]))
        return found

    # At most `most` pixels high: the time goes into writing them.
    def picture(self, path, most=3000):
        height = self.run("document.documentElement.scrollHeight")
        width = self.run("innerWidth")
        self.ask("Emulation.setDeviceMetricsOverride", {"width": width, "height": min(height, most), "deviceScaleFactor": 1, "mobile": False})
        data = base64.b64decode(self.ask("Page.captureScreenshot", {"format": "png"})["data"])
        with open(path, "wb") as out:
            out.write(data)
        return len(data)

    def close(self):
        try:
            self.ask("Browser.close", session=None)
            self.process.wait(10)
        except (OSError, EOFError, TimeoutError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
