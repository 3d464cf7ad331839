"""Makes the demonstration's corpus: the prose of installed Python packages, or your own text.

Every module of the packages beside this interpreter, and of its standard library, is a document:
the sentences of its docstrings, each kept once in the whole corpus. Nothing is imported. Some
documents are held out, chosen by a hash of their names.

    python -m demo.collect_docstrings --output_dir=demo_out/corpus
"""

from __future__ import annotations

from data_pipeline.command_line import flags, run_binary  # isort: skip  First: quiet TensorFlow.

import concurrent.futures
import gc
import multiprocessing
import os
import platform
import re
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from data_pipeline.errors import UserError
from demo import corpus
from demo.corpus import CorpusDocument
from demo.docstring_prose import prose_sentences

FLAGS = flags.FLAGS

MIN_SENTENCES = 3  # Modules with fewer sentences are left out.
MAX_FILE_BYTES = 1_000_000
STANDARD_LIBRARY = "python"
_SKIPPED_FOLDER = re.compile(r"tests?|_vendor|_?vendored|idlelib|__pycache__|.*-packages")
_SKIPPED_FILE = re.compile(r"test_.*|.*_test\.py|conftest\.py")


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Input and output")
    flags.DEFINE_string("output_dir", None, "Folder to write the corpus to.", required=True)
    flags.DEFINE_string(
        "corpus",
        None,
        "Your own text instead of docstrings: txt (blank line between documents), jsonl, .gz.",
    )
    flags.DEFINE_float("heldout_share", 0.05, "Share of the documents that is held out.", below=1)
    flags.DEFINE_integer("processes", os.cpu_count(), "Processes that parse source files.", 1, 1024)


def default_roots() -> list[tuple[str, Path]]:
    """(package name, folder) of what is installed here; "" where each entry is a package."""
    paths = sysconfig.get_paths()
    installed = sorted({Path(paths["purelib"]), Path(paths["platlib"])})
    return [*(("", folder) for folder in installed), (STANDARD_LIBRARY, Path(paths["stdlib"]))]


def source_files(roots: Iterable[tuple[str, Path]]) -> list[tuple[str, str, Path]]:
    """(package, module, file) of the sources below folders, sorted; tests are left out."""
    found = []
    for package, root in roots:
        for folder, folders, files in os.walk(root):
            folders[:] = [name for name in folders if not _SKIPPED_FOLDER.fullmatch(name)]
            for path in (Path(folder, name) for name in files if name.endswith(".py")):
                if _SKIPPED_FILE.fullmatch(path.name) or path.stat().st_size > MAX_FILE_BYTES:
                    continue
                parts = path.relative_to(root).with_suffix("").parts
                module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                found.append((package or parts[0].lstrip("_"), module, path))
    return sorted(found)


def _prepare_worker() -> None:
    """Readies a process for parsing."""
    warnings.simplefilter("ignore")  # The parser warns about other people's sources.
    gc.disable()  # A third of the time; syntax trees hold no cycles.


def _sentences_of(path: Path) -> list[str]:
    """The prose of a source file; none when it cannot be read."""
    try:
        return prose_sentences(path.read_bytes())
    except OSError:
        return []


def docstring_documents(
    roots: Iterable[tuple[str, Path]], processes: int = 1
) -> list[CorpusDocument]:
    """The documents of installed packages, sorted by package and module.

    Args:
      roots: (package name, folder), as from `default_roots`.
      processes: number of processes that parse; the result does not depend on it.
    """
    files = source_files(roots)
    context = multiprocessing.get_context("spawn")  # A fork would inherit TensorFlow's threads.
    with concurrent.futures.ProcessPoolExecutor(
        max(1, processes), mp_context=context, initializer=_prepare_worker
    ) as pool:
        texts = pool.map(_sentences_of, [path for _, _, path in files], chunksize=32)
        modules = [(package, module, text) for (package, module, _), text in zip(files, texts)]
    return list(_without_repetitions(modules))


def _without_repetitions(
    modules: Iterable[tuple[str, str, list[str]]],
) -> Iterator[CorpusDocument]:
    """Keeps the first of equal sentences, and the documents that remain long enough."""
    seen: set[str] = set()
    for package, module, sentences in modules:
        new: dict[str, str] = {}
        for sentence in sentences:
            key = corpus.normalized(sentence)
            if key not in seen:
                new.setdefault(key, sentence)
        if len(new) >= MIN_SENTENCES:
            seen.update(new)
            yield CorpusDocument(package, module, list(new.values()))


def own_documents(patterns: str) -> list[CorpusDocument]:
    """The documents of the user's own files (data_pipeline/corpus/formats.py), none left out.

    Raises:
      UserError: no such file, or no text in it.
    """
    from data_pipeline.corpus.documents import Corpus, read_documents

    found, paths = [], Corpus(patterns).files()
    names = [os.path.basename(path) for path in paths]
    for path, source in zip(paths, paths if len(set(names)) < len(names) else names):
        for index, document in enumerate(read_documents(Corpus([path]))):
            sentences = [" ".join(sentence.split()) for sentence in document]
            found.append(CorpusDocument(source, f"{source}:{index}", sentences))
    if not found:
        raise UserError(f"There is no text in {patterns}; give files with text.")
    return found


def main() -> None:
    """Writes the corpus, then prints its sizes and the next command."""
    if FLAGS.corpus is not None:
        documents = own_documents(FLAGS.corpus)
    else:
        documents = docstring_documents(default_roots(), FLAGS.processes)
    settings = {
        "corpus": FLAGS.corpus,
        "python": platform.python_version(),
        "heldout_share": FLAGS.heldout_share,
    }
    documents = corpus.hold_out(documents, FLAGS.heldout_share)
    manifest = corpus.write(documents, FLAGS.output_dir, settings)
    for split in corpus.SPLITS:
        counts = manifest[split]
        print(
            f"{split}.txt: {counts['bytes'] / 1e6:.1f} MB, {counts['sentences']:,} sentences in "
            f"{counts['documents']:,} documents"
        )
    largest = list(manifest["sources"].items())[:8]
    print("Largest sources: " + ", ".join(f"{k} {v['sentences']:,}" for k, v in largest))
    print(
        f"Next: python -m data_pipeline.train_vocabulary --input={FLAGS.output_dir}/train.txt "
        "--output_dir=VOCABULARY"
    )


if __name__ == "__main__":
    define_flags()
    run_binary(main)
