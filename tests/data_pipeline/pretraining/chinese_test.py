"""Chinese from text to records, by the commands of docs/data.md."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from albert_tf.pretrained.presets import get_preset
from data_pipeline.records import record_folder
from data_pipeline.tokenizers.loading import load_tokenizer
from tests.forked_programs import ENTRY_POINT

ROOT = Path(__file__).parents[3]
SENTENCES = [
    "今天天气很好，我们一起去公园散步。",
    "他问：“你明天有空吗？”她点了点头。",
    "这本书是2010年出版的，讲的是一座古老城市的历史！",
    "孩子们在河边玩水，老人坐在树下喝茶。",
    "你知道这条路通向哪里吗？",
    "冬天来了，山上下起了大雪。",
    "火车晚点了三十分钟。",
    "他用TensorFlow写了一个程序。",
    "猫坐在门口，看着外面的雨。",
    "我们明年还要回到这个地方。",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """zh/a.txt: documents of two paragraphs with six sentences each."""
    folder = tmp_path_factory.mktemp("chinese")
    (folder / "zh").mkdir()
    paragraphs = [
        "".join(SENTENCES[(3 * i + j * (1 + i % 3)) % len(SENTENCES)] for j in range(6))
        for i in range(80)
    ]
    documents = ["\n".join(paragraphs[i : i + 2]) for i in range(0, 80, 2)]
    (folder / "zh" / "a.txt").write_text("\n\n".join(documents), encoding="utf-8")
    return folder


def test_the_commands_of_the_documentation(folder, quick_python):
    text = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    [script] = re.findall(r"^```sh\n(.*?)^```", text[text.index("\n## Chinese\n") :], re.M | re.S)
    size = int(re.search(r"--vocab_size=(\d+)", script)[1])
    assert size == get_preset("albert-base-zh").vocab_size
    script = script.replace(f"--vocab_size={size}", "--vocab_size=150")
    script = script.replace("albert-tf", shlex.join([quick_python, "-c", ENTRY_POINT]))
    result = subprocess.run(
        ["bash", "-e", "-c", script], cwd=folder, capture_output=True, text=True, timeout=600
    )
    assert result.returncode == 0, result.stderr[-4000:]
    assert "[MASK]<" in result.stdout

    manifest = record_folder.verify_records(str(folder / "zh" / "records"), full=True)
    assert manifest["masking"] == "dynamic" and manifest["vocab_size"] == 150
    assert manifest["corpus"]["unknown_share"] == 0
    assert manifest["corpus"]["documents"] == 40 and manifest["corpus"]["sentences"] >= 480
    tokenizer = load_tokenizer(str(folder / "zh" / "vocabulary" / "vocab.txt"))
    assert tokenizer.pieces[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    ideographs = {c for sentence in SENTENCES for c in sentence if "\u4e00" <= c <= "\u9fff"}
    assert ideographs <= set(tokenizer.pieces) and "##天" not in tokenizer.pieces
    assert tokenizer.encode_pieces("天气。") == ["天", "气", "。"]
    assert {"##f", "te"} & set(tokenizer.pieces)
