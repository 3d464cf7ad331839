"""Weights by name, from a local mirror of the Hugging Face hub: pinned, checked, cached."""

import hashlib
import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import flask
import pytest
import werkzeug.serving
from huggingface_hub import constants

import albert_tf
from albert_tf import PRESETS, from_preset
from albert_tf.errors import UserError
from albert_tf.pretrained import hub
from albert_tf.pretrained.loading import locate

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "goldens" / "hf_tiny" / "pretraining"
NAME, REPOSITORY, REVISION = "albert-base-v2", "albert/albert-base-v2", "1" * 40
WEIGHTS = (GOLDEN / "model.safetensors").read_bytes()
PINNED = hub.PublishedWeights(REPOSITORY, REVISION, hashlib.sha256(WEIGHTS).hexdigest())
PROGRAM = f"""
import json
from albert_tf.pretrained import hub
from albert_tf import AlbertClassifier, from_preset, preset_vocabulary
hub.PUBLISHED["{NAME}"] = hub.PublishedWeights(*{tuple(PINNED)})
model = from_preset("{NAME}", AlbertClassifier, num_classes=3)
path = preset_vocabulary("{NAME}")
print(json.dumps([float(model.encoder.pooler.kernel[0, 0]), open(path).read()]))
"""


class Mirror:
    """A server with the files of one revision of one repository.

    Attributes:
      address: for HF_ENDPOINT.
      requests: "METHOD name" of every request.
      files: what it serves; `hashes` is what it says of them, as the hub does.
      broken: None; or "cut": the first answer with the weights ends in their middle; or "hung": it
        stops there, until `may_end` is set.
    """

    def __init__(self) -> None:
        self.requests, self.broken = [], None
        self.files = {"config.json": (GOLDEN / "config.json").read_bytes(), "spiece.model": b"p"}
        self.hashes = {
            name: hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            for name, content in self.files.items()
        }
        self.files["model.safetensors"] = WEIGHTS
        self.hashes["model.safetensors"] = PINNED.sha256
        self.is_half, self.may_end = threading.Event(), threading.Event()
        app = flask.Flask("mirror")
        app.add_url_rule(f"/{REPOSITORY}/resolve/{REVISION}/<path:name>", view_func=self._resolve)
        # What the hub says of a repository, by its main branch or by another revision.
        for end in ("", "/revision/<path:revision>"):
            app.add_url_rule(f"/api/models/{REPOSITORY}{end}", end or "main", self._describe)
        self._server = werkzeug.serving.make_server("127.0.0.1", 0, app, threaded=True)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def _describe(self, revision: str = "main") -> dict:
        self.requests.append(f"{flask.request.method} revision {revision}")
        files = [{"rfilename": name} for name in self.files]
        return {"id": REPOSITORY, "sha": REVISION, "siblings": files}

    def _resolve(self, name: str) -> flask.Response:
        self.requests.append(f"{flask.request.method} {name}")
        content = self.files[name]
        start = int(flask.request.headers.get("Range", "bytes=0-")[6:-1])
        response = flask.Response(content[start:], mimetype="application/octet-stream")
        if start:
            response.status_code = 206
            response.headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        response.headers["ETag"] = f'"{self.hashes[name]}"'
        response.headers["X-Repo-Commit"] = REVISION
        if self.broken and flask.request.method == "GET" and name == "model.safetensors":
            response.response = self._half(content, self.broken == "hung")
            self.broken = None
        return response

    def _half(self, content: bytes, hang: bool) -> Iterator[bytes]:
        yield content[: len(content) // 2]
        self.is_half.set()
        if hang:
            self.may_end.wait()

    def close(self) -> None:
        self.may_end.set()
        self._server.shutdown()
        self._thread.join()


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    server = Mirror()
    yield server
    server.close()


@pytest.fixture
def use(monkeypatch, tmp_path):
    """Lets this process use an address as the hub, with a cache of the test's own, and no waiting
    between two attempts.
    """
    monkeypatch.setitem(hub.PUBLISHED, NAME, PINNED)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setattr(hub, "_BLOCK_BYTES", 1000)  # Less than any file with weights has.

    def change(address: str) -> None:
        template = "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + template)

    def forget() -> None:
        hub.download.cache_clear()
        hub.download_repository.cache_clear()

    forget()
    yield change
    forget()


def weights_in(cache: Path) -> list[Path]:
    """All that lies in a cache and counts as a file with weights, or is left of one."""
    found = [*cache.rglob("model.safetensors*"), *cache.rglob(f"blobs/{PINNED.sha256}*")]
    return [path for path in found if path.suffix not in (".lock", ".incomplete")]


def start(python: str, cache: Path, mirror: Mirror, **environment: str) -> subprocess.Popen:
    """The program above in a process of its own, as the hub reads its environment."""
    return subprocess.Popen(
        [python, "-c", PROGRAM],
        cwd=ROOT,
        env={
            **os.environ,
            "HF_HOME": str(cache),
            "HF_HUB_DISABLE_XET": "1",
            "HF_ENDPOINT": mirror.address,
            **environment,
        },
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_killed_download_counts_for_nothing_and_a_finished_one_is_kept(
    mirror, quick_python, tmp_path
):
    mirror.broken = "hung"
    killed = start(quick_python, tmp_path, mirror)
    assert mirror.is_half.wait(timeout=300)
    killed.kill()
    killed.communicate()
    mirror.may_end.set()
    assert weights_in(tmp_path) == []
    encoder = from_preset(str(GOLDEN))
    expected = [float(encoder.pooler.kernel[0, 0]), "p"]
    output, _ = start(quick_python, tmp_path, mirror).communicate(timeout=300)
    assert json.loads(output.splitlines()[-1]) == expected
    assert mirror.requests.count("GET model.safetensors") == 2
    before = list(mirror.requests)
    offline = start(quick_python, tmp_path, mirror, HF_HUB_OFFLINE="1")
    output, _ = offline.communicate(timeout=300)
    assert json.loads(output.splitlines()[-1]) == expected
    assert mirror.requests == before


def test_files_are_downloaded_once(mirror, use):
    use(mirror.address)
    folder = locate(NAME).path
    assert Path(folder).name == REVISION
    assert sorted(line for line in mirror.requests if line.startswith("GET")) == [
        "GET config.json",
        "GET model.safetensors",
        "GET spiece.model",
    ]
    hub.download.cache_clear()
    use("http://127.0.0.1:9")
    assert locate(NAME).path == folder


def test_half_a_download_is_continued(mirror, use):
    use(mirror.address)
    mirror.broken = "cut"
    path = Path(locate(NAME).path) / "model.safetensors"
    assert mirror.requests.count("GET model.safetensors") == 2
    assert path.read_bytes() == WEIGHTS


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "other weights"])
def test_a_damaged_download_is_refused_and_deleted(mirror, use, name, tmp_path):
    use(mirror.address)
    if name == "other weights":  # What the mirror says of them is right.
        name = "model.safetensors"
        mirror.files[name] = WEIGHTS[:-4] + b"\0\0\0\1"
        mirror.hashes[name] = hashlib.sha256(mirror.files[name]).hexdigest()
    else:
        mirror.files[name] = mirror.files[name][:-4] + b"oops"
    with pytest.raises(UserError, match=f"{name} of {REPOSITORY}, revision 1+, differs from"):
        locate(NAME)
    assert list((tmp_path / "cache").rglob(name)) == []
    assert not any((tmp_path / "cache").rglob(f"blobs/{mirror.hashes[name]}"))
    healthy = Mirror()
    try:
        use(healthy.address)
        assert (Path(locate(NAME).path) / "model.safetensors").read_bytes() == WEIGHTS
    finally:
        healthy.close()


def test_a_file_that_was_damaged_in_the_cache_is_downloaded_again(mirror, use):
    use(mirror.address)
    path = Path(locate(NAME).path) / "model.safetensors"
    path.resolve().write_bytes(b"")  # What a power cut leaves.
    hub.download.cache_clear()
    assert (Path(locate(NAME).path) / "model.safetensors").read_bytes() == WEIGHTS


def refusal() -> str:
    with pytest.raises(UserError) as error:
        locate(NAME)
    message = str(error.value)
    assert message.startswith(f"{REPOSITORY} is not in the cache and cannot be downloaded: ")
    assert "pass the path of a folder with config.json, model.safetensors" in message
    return message


def test_offline_mode_asks_nothing_of_the_network(mirror, use, monkeypatch):
    use(mirror.address)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE" in refusal()
    assert mirror.requests == []


def test_an_unreachable_hub_is_asked_once(use, monkeypatch):
    pauses = []
    monkeypatch.setattr("time.sleep", pauses.append)
    use("http://127.0.0.1:9")
    refusal()
    assert pauses == []


def test_a_silent_hub_is_not_waited_for(use, monkeypatch):
    monkeypatch.delenv("HF_HUB_ETAG_TIMEOUT", raising=False)
    monkeypatch.setattr(hub, "_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        use(f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert "0.2 seconds (HF_HUB_ETAG_TIMEOUT sets another time)" in refusal()


def as_bert(mirror: Mirror, name: str = "bert_classifier") -> None:
    """Lets a mirror serve a BERT instead, with files that are of no use here."""
    folder = ROOT / "tests" / "goldens" / "hf_bert" / name
    content = {name: (folder / name).read_bytes() for name in ("config.json", "model.safetensors")}
    vocabulary = "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefg"]).encode()
    mirror.files = {**content, "vocab.txt": vocabulary, "pytorch_model.bin": b"?", "README.md": b""}
    mirror.hashes = {name: hashlib.sha256(each).hexdigest() for name, each in mirror.files.items()}


def test_a_repository_by_its_name(mirror, use, capfd, monkeypatch):
    """`org/name`, whatever it holds: what is read of it, its revision and hashes; then offline."""
    as_bert(mirror)
    use(mirror.address)
    name = "albert/albert-base-v2@refs/pr/3"
    model = from_preset(name, albert_tf.AlbertClassifier, num_classes=2)
    assert model.config.parameter_sharing == "none" and model.config.hidden_act == "gelu_erf"
    sha256 = mirror.hashes["model.safetensors"]
    said = f"{name}: revision {REVISION}; model.safetensors sha256 {sha256}"
    assert said in capfd.readouterr().out
    got = {
        each.split()[1] for each in mirror.requests if each.startswith("GET") and "rev" not in each
    }
    assert got == {"config.json", "model.safetensors", "vocab.txt"}
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    hub.download_repository.cache_clear()
    mirror.requests.clear()
    source = locate(f"albert/albert-base-v2@{REVISION}")
    assert source.vocab_file and locate(name).path == source.path and mirror.requests == []
    origin = {"repository": REPOSITORY, "revision": REVISION}
    assert source.metadata()["origin"] == {**origin, "sha256": {"model.safetensors": sha256}}
    assert f"{name}: from the cache: HF_HUB_OFFLINE is set\n{said}" in capfd.readouterr().out


def test_a_name_alone_is_found_offline(mirror, use, monkeypatch):
    """It is the commit that it was when it was downloaded."""
    as_bert(mirror)
    use(mirror.address)
    folder = hub.download_repository(REPOSITORY)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    hub.download_repository.cache_clear()
    assert hub.download_repository(REPOSITORY) == folder
    with pytest.raises(UserError, match="found in its cache: HF_HUB_OFFLINE is set"):
        hub.download_repository(f"{REPOSITORY}@refs/pr/3")


def test_a_cache_that_cannot_be_written_to_is_read(mirror, use, monkeypatch):
    as_bert(mirror)
    use(mirror.address)

    def refuse(*unused):
        raise PermissionError("read-only")

    monkeypatch.setattr(hub.atomic_files, "write_text", refuse)
    assert hub.download_repository(REPOSITORY).endswith(REVISION)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"pytorch_model.bin", "config.json"}, "only pytorch_model.bin, a pickle, .*@refs/pr/1"),
        ({"README.md", "config.json"}, "holds none of model.safetensors"),
        ({"model.safetensors"}, "holds no config.json at its top"),
        ({"model.safetensors", "config.json", "adapter_config.json"}, "of an adapter, which"),
    ],
)
def test_a_repository_without_safe_weights(mirror, use, files, message):
    as_bert(mirror)
    mirror.files = dict.fromkeys(files, b"")
    use(mirror.address)
    with pytest.raises(UserError, match=message):
        hub.download_repository(REPOSITORY)


def test_a_repository_of_tensorflows_classes(mirror, use):
    as_bert(mirror)
    for each in (mirror.files, mirror.hashes):
        each["tf_model.h5"] = each.pop("model.safetensors")
    use(mirror.address)
    assert "tf_model.h5" in os.listdir(hub.download_repository(REPOSITORY))


def test_neither_a_path_nor_a_repository(mirror, use, tmp_path):
    use(mirror.address)
    with pytest.raises(UserError, match="else is not an existing path, and cannot be down"):
        locate("someone/else")
    (tmp_path / "runs").mkdir()
    with pytest.raises(UserError, match="does not exist"):
        locate(f"{tmp_path}/runs/model")
    assert not hub.is_repository("tests/model")


def test_a_preset_of_another_shape(mirror, use, monkeypatch):
    as_bert(mirror)
    use(mirror.address)
    monkeypatch.setitem(hub.REPOSITORIES, "bert-tiny-uncased", REPOSITORY)
    with pytest.raises(UserError, match="vocab_size is 40, but bert-tiny-uncased has 30522"):
        locate("bert-tiny-uncased")


def test_a_cache_without_links_does_not_know_the_hash(tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    assert hub._damage(str(tmp_path / "file"), None) is None


def test_every_published_preset_is_pinned():
    assert set(hub.PUBLISHED) == {name for name in PRESETS if name.endswith(("-v1", "-v2"))}
    for name, weights in hub.PUBLISHED.items():
        assert weights.repository == f"albert/{name}"
        assert len(weights.revision) == 40 and set(weights.revision) <= set("0123456789abcdef")
        assert weights.sha256 is None or len(weights.sha256) == 64
