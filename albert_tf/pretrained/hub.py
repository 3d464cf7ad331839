"""Published weights: their revisions on the Hugging Face hub, their download, and its check.

The cache is the hub's own (HF_HOME). HF_ENDPOINT names a mirror; with HF_HUB_OFFLINE nothing is
asked of the network.
"""

from __future__ import annotations

import functools
import hashlib
import os
import queue
import re
import threading
from typing import NamedTuple

from albert_tf.checkpoints import huggingface, vocabulary
from albert_tf.errors import UserError

_FILES = (huggingface.CONFIG_FILE, huggingface.WEIGHTS_FILE, vocabulary.SENTENCEPIECE)
_SECONDS = 4.0  # The time for the hub's first answer, unless HF_HUB_ETAG_TIMEOUT is set.
_BLOCK_BYTES = 1 << 20
_SHA256, _GIT_SHA1 = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{40}")


class PublishedWeights(NamedTuple):
    """The place where weights of a preset are published in a format that can be loaded safely."""

    repository: str
    revision: str  # The commit that is downloaded, whatever is committed later.
    sha256: str | None  # The hash of model.safetensors; None where only the hub itself says it.


def _version(version: str, **pinned: tuple[str, str | None]) -> dict[str, PublishedWeights]:
    """The published weights of one version; pinned: size -> (revision, sha256)."""
    return {
        f"albert-{size}-{version}": PublishedWeights(f"albert/albert-{size}-{version}", *values)
        for size, values in pinned.items()
    }


# As the hub's own pages show them. The main branches of large-v1 and xxlarge-v1 hold pickles only:
# these revisions, like xlarge-v2's, are the hub's own conversion, proposed to the repository.
PUBLISHED: dict[str, PublishedWeights] = {
    **_version(
        "v1",
        base=(
            "66b3f3c279cf3a1df6d8df1cffa60d4d026ea396",
            "28ede8cd37c7e0605ae75c32a1961436c0d3b1d0d2086e008a8f22fbd22bbeb7",
        ),
        large=(
            "0c31a4eabf79cc760d88a4e4b85a2917a60d52f2",
            "2ecac91d228ce2eb6230f17165f550077489712e03e9eb8213a10c1c7a67c747",
        ),
        xlarge=(
            "ed6f87d14403b3c459a458fa6aa9dc5c51c517c1",
            "2ed2c23b21849872a1ab6bac8e4051f3bc181e1f056cd99197d807b08b6a6802",
        ),
        xxlarge=("5eaef1f4d134bf7499ce037a5c2f2a54d8e56a33", None),
    ),
    **_version(
        "v2",
        base=(
            "c3fcc1d2675a05929ea687d4ffbb537d1aa9c57a",
            "d24c30ec641e40087eed68adf958afe2dab0432790ec3ffa88b31ce773ae33eb",
        ),
        large=(
            "1e2b86a91a3c63b5707d038747fb30838d9e7bac",
            "9c67a6fa12e38e205273eb0dcc8c0aa7326dc962a5cd7a375e780f95558b830d",
        ),
        xlarge=(
            "1f9c59907c789aa498f48a93389a12ac511bf034",
            "538eb2e3b0b8416f5b448dc58748712c654d7cce254ca979fac781d859ff7968",
        ),
        xxlarge=(
            "c5d4d781367af62398af2120d7db1750eabb898f",
            "d470d679655e235d85a90b487f5003d4ca5115c790d60aae01c253826408d9a7",
        ),
    ),
}


@functools.cache  # A program asks several times, and to hash 900 MB takes seconds.
def download(weights: PublishedWeights) -> str:
    """The local folder of the pinned configuration, weights and vocabulary; the hub is asked only
    for files that are not in the cache, or damaged there.
    """
    try:
        paths = [_file(weights, name) for name in _FILES]
    except UserError:
        raise
    except Exception as error:  # The hub's own classes, the HTTP library's, OSError, ...
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise UserError(
            f"{weights.repository} is not in the cache and cannot be downloaded: {reason}. Go "
            "online once (HF_HUB_OFFLINE unset; HF_ENDPOINT names a mirror), or pass the path of "
            f"a folder with {', '.join(_FILES)}."
        ) from None
    return os.path.dirname(paths[0])


def _file(weights: PublishedWeights, name: str) -> str:
    """The path in the cache of a file that equals the published one."""
    import huggingface_hub

    known = weights.sha256 if name == huggingface.WEIGHTS_FILE else None
    repository, revision = weights.repository, weights.revision
    cached = huggingface_hub.try_to_load_from_cache(repository, name, revision=revision)
    in_cache = isinstance(cached, str)
    if in_cache and _damage(cached, known) is None:
        return cached
    _wait_for_hub(huggingface_hub.hf_hub_url(repository, name, revision=revision))
    path = huggingface_hub.hf_hub_download(
        repository, name, revision=revision, force_download=in_cache
    )
    damage = _damage(path, known)
    if damage:
        _remove(path)
        raise UserError(
            f"{name} of {repository}, revision {revision}, did not arrive as it was published: "
            f"{damage}. It is deleted. Try again; if that does not help, HF_ENDPOINT may name a "
            "mirror with other files."
        )
    return path


def _wait_for_hub(url: str) -> None:
    """Asks the hub for a file's description; raises the error if it does not answer in time."""
    # `hf_hub_download` repeats its questions for half a minute where there is no answer, or for
    # many minutes where packets are lost. In a thread, because the lookup of a host name has no
    # time limit.
    import huggingface_hub
    from huggingface_hub import constants

    is_set = "HF_HUB_ETAG_TIMEOUT" in os.environ
    seconds = constants.HF_HUB_ETAG_TIMEOUT if is_set else _SECONDS
    answers: queue.Queue[Exception | None] = queue.Queue()

    def ask() -> None:
        try:
            huggingface_hub.get_hf_file_metadata(url, timeout=2 * seconds)  # The limit is below.
            answers.put(None)
        except Exception as error:
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        error = answers.get(timeout=seconds)
    except queue.Empty:
        error = TimeoutError(
            f"{url} was not answered in {seconds:g} seconds (HF_HUB_ETAG_TIMEOUT sets another time)"
        )
    if error:
        raise error


def _damage(path: str, sha256: str | None) -> str | None:
    """The damage to a file of the cache, in words; None: it is whole."""
    # Where `sha256` is None, the expected hash is the one that the hub gave the file, by which the
    # cache names its content: a SHA-256, or git's SHA-1 for small files.
    expected = sha256 or (os.path.basename(os.readlink(path)) if os.path.islink(path) else "")
    if _SHA256.fullmatch(expected):
        digest = hashlib.sha256()
    elif _GIT_SHA1.fullmatch(expected):
        digest = hashlib.sha1(b"blob %d\0" % os.path.getsize(path))
    else:
        return None  # On a file system without links the cache has no place for the hash.
    with open(path, "rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    found = digest.hexdigest()
    return None if found == expected else f"its hash is {found}, not {expected}"


def _remove(path: str) -> None:
    """Removes a file from the cache: the content, and the link in the folder of the revision."""
    if os.path.islink(path):
        os.remove(os.path.join(os.path.dirname(path), os.readlink(path)))
    os.remove(path)
