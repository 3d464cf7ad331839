"""A headless browser, driven over HTTP as the WebDriver standard says: no package is needed."""

import contextlib
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # The standard's name of a reference.


class Browser:
    """One window. Elements are named by CSS selectors."""

    def __init__(self, session: str) -> None:
        self._session = session

    def _call(self, path, body):
        return command(f"{self._session}/{path}", body)

    def open(self, url):
        self._call("window/rect", {"width": 1200, "height": 1000})
        self._call("url", {"url": "about:blank"})
        self._call("url", {"url": url})

    def run(self, script, *arguments):
        """The value of a function's body in JavaScript."""
        return self._call("execute/sync", {"script": script, "args": list(arguments)})

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def type(self, selector, keys):
        """Puts the keyboard on an element and presses keys, as a person does."""
        found = self._call("element", {"using": "css selector", "value": selector})
        self._call(f"element/{found[ELEMENT]}/value", {"text": keys})

    def press(self, *keys):
        """Presses keys, the last one while the others are held, wherever the keyboard is."""
        down = [{"type": "keyDown", "value": key} for key in keys]
        up = [{"type": "keyUp", "value": key} for key in reversed(keys)]
        body = {"actions": [{"type": "key", "id": "keyboard", "actions": down + up}]}
        self._call("actions", body)

    def wait(self, script, seconds=20):
        """Waits until the body of a function in JavaScript gives true."""
        deadline = time.monotonic() + seconds
        while not self.run(script):
            assert time.monotonic() < deadline, f"never true: {script}"
            time.sleep(0.05)


def command(url, body=None, method=None):
    """The value of a WebDriver command."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)["value"]
    except urllib.error.HTTPError as error:
        raise AssertionError(error.read().decode()) from None


@contextlib.contextmanager
def open_browser(phone=False):
    """A browser without a window on a screen; `phone`: as wide as one, 390 pixels."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    driver = subprocess.Popen([DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL)
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    flags += ["--disable-dev-shm-usage", "--force-prefers-reduced-motion"]
    options = {"binary": CHROMIUM, "args": flags}
    if phone:
        metrics = {"width": 390, "height": 844, "pixelRatio": 1}
        options["mobileEmulation"] = {"deviceMetrics": metrics}
    address, session = f"http://127.0.0.1:{port}", None
    try:
        for _ in range(100):
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                if command(f"{address}/status")["ready"]:
                    break
            time.sleep(0.1)
        wanted = {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}
        made = command(f"{address}/session", {"capabilities": wanted})
        session = f"{address}/session/{made['sessionId']}"
        yield Browser(session)
    finally:
        if session:
            command(session, method="DELETE")
        driver.terminate()
        driver.wait()
