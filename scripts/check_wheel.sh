#!/bin/sh
# Builds the wheel, installs it into a fresh environment, and trains two steps with it, away from the source tree.
#   scripts/check_wheel.sh PYTHON [TENSORFLOW [TESTS...]]
#     PYTHON       a version like 3.12, or a path
#     TENSORFLOW   a version like 2.18; "" for what pip chooses by itself
#     TESTS        files and folders of tests, run in that environment afterwards, with the extra [test]
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
found=$("$root/scripts/find_python.sh" "$1")
tensorflow=${2:-}
shift $(($# < 2 ? $# : 2))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# From a copy: an old build/ would put files into the wheel that are no more.
mkdir "$work/source"
for name in pyproject.toml README.md LICENSE albert_tf data_pipeline export configs; do
    cp -R "$root/$name" "$work/source"
done
mkdir "$work/source/demo"
cp -R "$root/demo/tickets" "$work/source/demo"
unset PYTHONPATH
export PIP_DISABLE_PIP_VERSION_CHECK=1
"${found#* }" -m venv "$work/venv"
bin="$work/venv/bin"
"$bin/python" -m pip wheel --quiet --no-deps --wheel-dir="$work" "$work/source"
rm -rf "$work/source"
wheel=$(echo "$work"/albert_tf-*.whl)
install() { "$bin/python" -m pip install --quiet "$1" ${tensorflow:+"tensorflow==$tensorflow.*"}; }
install "$wheel"
"$bin/python" -m pip check
"$bin/python" -m pip list 2>/dev/null | grep -i -E '^(tensorflow|tf.keras|tensorflow.text|tensorboard|numpy) '

cd "$work"
"$bin/albert-tf" --help
"$bin/albert-tf" describe --preset=albert-base-v2
cp "$root/LICENSE" corpus.txt
"$bin/albert-tf" train-vocabulary --input=corpus.txt --output_dir=vocabulary --vocab_size=300
"$bin/albert-tf" create-pretraining-data --input=corpus.txt --output_dir=records \
    --vocab_file=vocabulary/spiece.model --max_seq_length=64
"$bin/albert-tf" pretrain --preset=albert-tiny --train_data=records --output_dir=run \
    --train_batch_size=4 --num_train_steps=2 --num_warmup_steps=1
test -s run/model/model.json
# The weights of the package, without network.
if [ -e "$root/albert_tf/weights/albert-small-en/model.safetensors" ]; then
    HF_HUB_OFFLINE=1 TF_CPP_MIN_LOG_LEVEL=3 "$bin/python" -c '
import albert_tf
albert_tf.quiet()
print(albert_tf.MaskFiller()("He studied at the [MASK] of Oxford.", top_k=3))
texts = ["Somebody plays music.", "The stock market fell today."]
print(albert_tf.SentenceEmbedder().similarity(["A man is playing a guitar."] * 2, texts))'
    "$bin/albert-tf" finetune --task=tsv --init_checkpoint=albert-small-en --output_dir=tickets --max_seq_length=32 \
        --train_file=example:tickets/train.tsv --dev_file=example:tickets/dev.tsv --num_train_steps=2
fi
"$bin/albert-tf" finetune --flagfile=finetune_mrpc --output_dir=none --print_flags | grep -F '"task": "mrpc"'
# What an extra brings is asked for in one sentence.
if "$bin/albert-tf" serve --model=any=run 2>error.txt; then exit 1; fi
cat error.txt
grep -F 'pip install "albert-tf[serving]"' error.txt >/dev/null

if [ $# -gt 0 ]; then
    install "$wheel[test]"
    cd "$root"
    "$bin/python" -m pytest --numprocesses=auto --maxprocesses=4 --dist=loadfile --no-loadscope-reorder "$@"
fi
