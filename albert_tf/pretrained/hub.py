"""Weights on the Hugging Face hub, pinned presets and any repository: download and verification.

The cache is the hub's own (HF_HOME). HF_ENDPOINT names a mirror; with HF_HUB_OFFLINE, the network
is not used.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import hashlib
import os
import re
import threading
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from albert_tf.checkpoints import huggingface, huggingface_weights, vocabulary
from albert_tf.errors import UserError, message_of
from data_pipeline.files import atomic_files

_FILES = (huggingface.CONFIG_FILE, huggingface.WEIGHTS_FILE, vocabulary.SENTENCEPIECE)
_SECONDS = 4.0  # Time limit for the hub's first answer, unless HF_HUB_ETAG_TIMEOUT is set.
_BLOCK_BYTES = 1 << 20
_SHA256, _GIT_SHA1 = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{40}")


class PublishedWeights(NamedTuple):
    """The place where weights of a preset are published in a format that can be loaded safely."""

    repository: str
    revision: str  # The commit to download, regardless of later commits.
    sha256: str | None  # The hash of model.safetensors; None if only the hub provides it.


# Preset -> revision and sha256, as shown on the hub's pages. The main branches of large-v1 and
# xxlarge-v1 contain only pickles: these revisions, like xlarge-v2's, are the hub's own conversion,
# proposed as a pull request.
_PINNED = {
    "albert-base-v1": (
        "66b3f3c279cf3a1df6d8df1cffa60d4d026ea396",
        "28ede8cd37c7e0605ae75c32a1961436c0d3b1d0d2086e008a8f22fbd22bbeb7",
    ),
    "albert-large-v1": (
        "0c31a4eabf79cc760d88a4e4b85a2917a60d52f2",
        "2ecac91d228ce2eb6230f17165f550077489712e03e9eb8213a10c1c7a67c747",
    ),
    "albert-xlarge-v1": (
        "ed6f87d14403b3c459a458fa6aa9dc5c51c517c1",
        "2ed2c23b21849872a1ab6bac8e4051f3bc181e1f056cd99197d807b08b6a6802",
    ),
    "albert-xxlarge-v1": ("5eaef1f4d134bf7499ce037a5c2f2a54d8e56a33", None),
    "albert-base-v2": (
        "c3fcc1d2675a05929ea687d4ffbb537d1aa9c57a",
        "d24c30ec641e40087eed68adf958afe2dab0432790ec3ffa88b31ce773ae33eb",
    ),
    "albert-large-v2": (
        "1e2b86a91a3c63b5707d038747fb30838d9e7bac",
        "9c67a6fa12e38e205273eb0dcc8c0aa7326dc962a5cd7a375e780f95558b830d",
    ),
    "albert-xlarge-v2": (
        "1f9c59907c789aa498f48a93389a12ac511bf034",
        "538eb2e3b0b8416f5b448dc58748712c654d7cce254ca979fac781d859ff7968",
    ),
    "albert-xxlarge-v2": (
        "c5d4d781367af62398af2120d7db1750eabb898f",
        "d470d679655e235d85a90b487f5003d4ca5115c790d60aae01c253826408d9a7",
    ),
}
PUBLISHED = {name: PublishedWeights(f"albert/{name}", *pinned) for name, pinned in _PINNED.items()}
# Presets whose repository is not pinned: the main branch is downloaded.
REPOSITORIES = {
    "bert-base-uncased": "google-bert/bert-base-uncased",
    "bert-tiny-uncased": "google/bert_uncased_L-2_H-128_A-2",
    "bert-mini-uncased": "google/bert_uncased_L-4_H-256_A-4",
    "bert-small-uncased": "google/bert_uncased_L-4_H-512_A-8",
    "bert-medium-uncased": "google/bert_uncased_L-8_H-512_A-8",
    "electra-small-discriminator": "google/electra-small-discriminator",
}
_REPOSITORY = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")
# The files of a repository to download: weights, configuration, vocabulary, and the settings of
# tokenizer and sentence vectors.
_WANTED = re.compile(
    r"config\.json|model\.safetensors(\.index\.json)?|model-\d+-of-\d+\.safetensors|spiece\.model"
    r"|vocab\.txt|tokenizer(_config)?\.json|special_tokens_map\.json|added_tokens\.json"
    r"|modules\.json|(config_sentence_transformers|sentence_[\w-]+_config)\.json"
    r"|\d_Pooling/config\.json"
)


def is_repository(name: str) -> bool:
    """Whether a name has the form of a repository, `org/name` or `org/name@revision`."""
    return bool(_REPOSITORY.fullmatch(name)) and not os.path.isdir(name.partition("/")[0])


@functools.cache
def download_repository(name: str) -> str:
    """The local folder with the needed files of a repository, `org/name[@revision]`: the hub's
    latest version, or the cached one if the hub does not answer. Prints one line about it.
    """
    import huggingface_hub
    from huggingface_hub import constants

    match = _REPOSITORY.fullmatch(name)
    assert match is not None
    repository, revision = match["name"], match["revision"]
    api = huggingface_hub.HfApi(endpoint=constants.ENDPOINT)
    try:
        if constants.HF_HUB_OFFLINE:
            raise ConnectionError("HF_HUB_OFFLINE is set")
        info = _in_time(lambda: api.model_info(repository, revision=revision), repository)
        commit, names = info.sha, [each.rfilename for each in info.siblings]
        _check_files(name, names)
        wanted = [each for each in names if _WANTED.fullmatch(each)]
        if not any(each.endswith(".safetensors") for each in wanted):
            wanted.append(huggingface_weights.H5_FILE)
        paths = [_file(PublishedWeights(repository, commit, None), each) for each in wanted]
        folder = os.path.dirname(paths[wanted.index(huggingface.CONFIG_FILE)])
        _remember(folder, revision or "main", commit)
    except UserError:
        raise
    except Exception as error:
        reason = message_of(error)
        try:
            folder = huggingface_hub.snapshot_download(
                repository, revision=revision, local_files_only=True
            )
        except Exception:
            raise UserError(
                f"{name} is not an existing path, and cannot be downloaded from the Hugging Face "
                f"hub or found in its cache: {reason}. Correct the path or the name; for a "
                "repository go online once (HF_HUB_OFFLINE unset; HF_ENDPOINT names a mirror)."
            ) from None
        print(f"{name}: from the cache: {reason}")
    print(f"{name}: revision {os.path.basename(folder)}; {_hashes(folder)}")
    return folder


def _remember(folder: str, revision: str, commit: str) -> None:
    """Stores in the cache which commit a revision stands for, so that it can be found offline."""
    # The hub's client does this only if files are requested by revision name. Here they are
    # requested by commit, so that all files belong to the same one.
    if revision == commit:
        return
    path = os.path.join(os.path.dirname(os.path.dirname(folder)), "refs", revision)
    with contextlib.suppress(OSError):  # A cache may be read-only.
        os.makedirs(os.path.dirname(path), exist_ok=True)
        atomic_files.write_text(path, commit)


def _check_files(name: str, files: Collection[str]) -> None:
    """Raises UserError unless a repository has a complete model that can be loaded safely."""
    adapters = [each for each in files if each.startswith("adapter_")]
    pickled = [each for each in files if each.endswith((".bin", ".pt", ".pth"))]
    if adapters:
        reason = (
            f"{adapters[0]}, of an adapter, which changes the answers of the model that it was "
            "trained on and is not supported. Merge it into the model, and pass that folder"
        )
    elif huggingface.CONFIG_FILE not in files:
        reason = f"no {huggingface.CONFIG_FILE} at its top. Name a folder or repository that does"
    elif not set(files).isdisjoint(huggingface_weights.WEIGHTS_FILES):
        return
    elif pickled:
        reason = (
            f"only {pickled[0]}, a pickle, which can run any code and is never loaded here. Look "
            f"for a conversion among its pull requests, and name it: {name}@refs/pr/1"
        )
    else:
        known = ", ".join(huggingface_weights.WEIGHTS_FILES)
        reason = f"none of {known}. Name another repository"
    raise UserError(f"the repository {name} holds {reason}.")


def _hashes(folder: str) -> str:
    """The SHA-256 of each weights file: "model.safetensors sha256 d24c30..."."""
    hashes = [
        f"{os.path.basename(path)} sha256 {atomic_files.file_sha256(path)}"
        for path in huggingface_weights.weights_files(folder)
    ]
    return ", ".join(hashes)


@functools.cache  # Called several times per program; hashing 900 MB takes seconds.
def download(weights: PublishedWeights) -> str:
    """The local folder of the pinned configuration, weights and vocabulary. Downloads only files
    that are missing in the cache, or damaged there.
    """
    try:
        paths = [_file(weights, name) for name in _FILES]
    except UserError:
        raise
    except Exception as error:  # From the hub's client, the HTTP library, OSError, ...
        reason = message_of(error)
        raise UserError(
            f"{weights.repository} is not in the cache and cannot be downloaded: {reason}. Go "
            "online once (HF_HUB_OFFLINE unset; HF_ENDPOINT names a mirror), or pass the path of "
            f"a folder with {', '.join(_FILES)}."
        ) from None
    return os.path.dirname(paths[0])


def _file(weights: PublishedWeights, name: str) -> str:
    """The path of a file in the cache, verified to equal the published one."""
    import huggingface_hub

    known = weights.sha256 if name == huggingface.WEIGHTS_FILE else None
    repository, revision = weights.repository, weights.revision
    cached = huggingface_hub.try_to_load_from_cache(repository, name, revision=revision)
    in_cache = isinstance(cached, str)
    if in_cache and _damage(cached, known) is None:
        return cached
    url = huggingface_hub.hf_hub_url(repository, name, revision=revision)
    # The request's own time limit must be longer than that of the wait.
    _in_time(lambda: huggingface_hub.get_hf_file_metadata(url, timeout=2 * _seconds()), url)
    path = huggingface_hub.hf_hub_download(
        repository, name, revision=revision, force_download=in_cache
    )
    if damage := _damage(path, known):
        _remove(path)
        raise UserError(
            f"{name} of {repository}, revision {revision}, differs from the published file: "
            f"{damage}. It was deleted. Try again; if that does not help, HF_ENDPOINT may name a "
            "mirror with other files."
        )
    return path


def _seconds() -> float:
    from huggingface_hub import constants

    return constants.HF_HUB_ETAG_TIMEOUT if "HF_HUB_ETAG_TIMEOUT" in os.environ else _SECONDS


def _in_time(ask: Callable[[], Any], what: str) -> Any:
    """The result of `ask`, or its error; raises TimeoutError if it takes too long."""
    # `huggingface_hub` retries for half a minute if there is no answer, or for many minutes if
    # packets are lost. `ask` runs in a thread, because the lookup of a host name has no time
    # limit.
    seconds = _seconds()
    answer: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def run() -> None:
        try:
            answer.set_result(ask())
        except Exception as error:
            answer.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    concurrent.futures.wait([answer], seconds)
    if not answer.done():
        raise TimeoutError(
            f"{what} was not answered in {seconds:g} seconds (HF_HUB_ETAG_TIMEOUT sets another "
            "time)"
        )
    return answer.result()


def _damage(path: str, sha256: str | None) -> str | None:
    """A description of the damage to a file in the cache; None if it is intact."""
    # If `sha256` is None, the expected hash is the one from the hub, which the cache uses as the
    # name of the content: a SHA-256, or git's SHA-1 for small files.
    expected = sha256 or (os.path.basename(os.readlink(path)) if os.path.islink(path) else "")
    if _SHA256.fullmatch(expected):
        digest = hashlib.sha256()
    elif _GIT_SHA1.fullmatch(expected):
        digest = hashlib.sha1(b"blob %d\0" % os.path.getsize(path))
    else:
        return None  # On a file system without links, the cache does not store the hash.
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
