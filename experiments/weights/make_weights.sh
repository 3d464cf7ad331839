#!/bin/sh
# Makes weights for albert_tf/weights/albert-small-en from text: vocabulary, records, starting weights, pre-training. Those in the
# package were made in more steps, see docs/weights.md.
#   experiments/weights/make_weights.sh PYTHON TRAIN HELDOUT [WORK]
#     TRAIN, HELDOUT   text files (globs, quoted) in any format of docs/data.md
#     WORK             folder of all that is made on the way; default: ~/.cache/albert-tf-weights
# A step that is finished is not made again; pre-training resumes where it was interrupted. Flags of the training:
# configs/weights_{shallow,128,512}.flags, one after the other; more of run_pretraining's: MORE_FLAGS.
set -eu

[ $# -ge 3 ] || { sed -n '2,7s/^# *//p' "$0" >&2; exit 2; }
python=$1 train=$2 heldout=$3
work=${4:-${XDG_CACHE_HOME:-$HOME/.cache}/albert-tf-weights}
root=$(cd "$(dirname "$0")/../.." && pwd)
name=albert-small-en
cd "$root"
run() { echo "\$ python -m $*"; "$python" -m "$@"; }
missing() { [ ! -e "$1" ]; }

vocabulary=$work/vocabulary/spiece.model
if missing "$vocabulary"; then
    run data_pipeline.train_vocabulary --input="$train" --output_dir="$work/vocabulary" --vocab_size=12000 \
        --input_sentence_size=1000000
fi
# TEXT LENGTH FOLDER: records with masks that are drawn while training.
records() {
    missing "$3/manifest.json" || return 0
    run data_pipeline.create_pretraining_data --input="$1" --vocab_file="$vocabulary" --max_seq_length="$2" \
        --output_dir="$3" --masked_lm_prob=0.2 --deduplicate
}
for length in 128 512; do
    records "$train" $length "$work/records/train_$length"
    records "$heldout" $length "$work/records/heldout_$length"
done
if missing "$work/start/model.json"; then
    run albert_tf.make_starting_weights --preset=$name --train_data="$work/records/train_128" \
        --output_dir="$work/start"
fi
# shellcheck disable=SC2086  # Flags are words.
# STAGE LENGTH START
pretrain() {
    run albert_tf.run_pretraining --flagfile="configs/weights_$1.flags" --init_checkpoint="$3" \
        --train_data="$work/records/train_$2" --eval_data="$work/records/heldout_$2" \
        --output_dir="$work/run_$1" ${MORE_FLAGS:-}
}
pretrain shallow 128 "$work/start"
pretrain 128 128 "$work/run_shallow/model"
pretrain 512 512 "$work/run_128/model"

# Made in $work first: the weights that are there stay until the new ones are whole.
made=$work/$name
rm -rf "$made"
run albert_tf.convert --input="$work/run_512/model" --output="$made" --format=huggingface --dtype=float16
(cd "$made" && sha256sum config.json model.safetensors spiece.model >SHA256SUMS)
folder=albert_tf/weights/$name
mkdir -p "$folder"
cp "$made"/* "$folder"
ls -l "$folder"
echo "The model card in $folder/README.md describes other weights: write what these are."
