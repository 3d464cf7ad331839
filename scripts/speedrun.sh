#!/bin/sh
# The whole story in about three minutes on two cores: text, records, pre-training, fine-tuning, export, and answers of a server.
#   scripts/speedrun.sh [OUTPUT]     everything is written there; default: demo_out
#     PYTHON=.venv-3.11/bin/python   an interpreter with the packages; `make demo` installs one and gives it
#     CORPUS='my_text/*.txt'         your own text, in any format of docs/data.md, instead of Python's language reference
#     PRETRAINING=, FINETUNING=      further flags of the two trainings: PRETRAINING="--num_train_steps=400 --seed=1"
# Every step is a command to copy. One that was finished is not run again; delete OUTPUT to start over.
set -eu
cd "$(dirname "$0")/.."
out=${1:-demo_out} weights=albert-small-en

# once NAME MODULE FLAGS: runs `python -m MODULE FLAGS` and notes under NAME that it is finished, and in how many seconds.
mkdir -p "$out/finished"
once() {
    note=$out/finished/$1 && shift
    if [ ! -e "$note" ]; then
        printf '\n$ python -m %s\n' "$*" && began=$(date +%s)
        "${PYTHON:-python}" -m "$@"
        printf '%s\n%s\n' "$*" $(($(date +%s) - began)) >"$note"
    elif [ "$(head -n 1 "$note")" != "$*" ]; then
        echo "speedrun.sh: $out was made with other settings (see $note). Name another OUTPUT, or delete it." >&2
        exit 2
    fi
}

# Text: English that every Python has with it. A tenth is held out, and never trained on.
once corpus demo.make_corpus --output_dir="$out/corpus" ${CORPUS:+--corpus="$CORPUS"}

# The vocabulary is the one of the weights, which are to go on with it. Weights of your own begin with another command:
# python -m data_pipeline.train_vocabulary --input=corpus.txt --output_dir=vocabulary --vocab_size=8000
vocabulary=albert_tf/weights/$weights/spiece.model

# Records: pieces of text with masked words and pairs of segments.
for split in train heldout; do
    once "records_$split" data_pipeline.create_pretraining_data --input="$out/corpus/$split.txt" \
        --output_dir="$out/records/$split" --vocab_file=$vocabulary --max_seq_length=64 --overwrite
done

# Pre-training: the weights of the package go on with the words of this text, once through it.
once pretraining albert_tf.run_pretraining --init_checkpoint=$weights --train_data="$out/records/train" \
    --eval_data="$out/records/heldout" --eval_first --train_batch_size=16 --eval_batch_size=64 --optimizer=adamw \
    --bias_correction --beta_2=0.98 --learning_rate=0.0003 --num_train_steps=50 --num_warmup_steps=5 --steps_per_loop=25 \
    --output_dir="$out/pretraining" ${PRETRAINING:-}

# Fine-tuning: messages of customers, 40 for each of twelve intents (demo/tickets/GUIDE.md); the same from scratch.
finetuning="--task=tsv --train_file=demo/tickets/train.tsv --dev_file=demo/tickets/dev.tsv --max_seq_length=32
    --train_batch_size=32 --num_train_epochs=5 --seeds=3 ${FINETUNING:-}"
once finetuning albert_tf.run_finetuning $finetuning --init_checkpoint=$weights --learning_rate=3e-4 \
    --output_dir="$out/classifier"
once from_scratch albert_tf.run_finetuning $finetuning --preset=$weights --learning_rate=5e-4 \
    --output_dir="$out/classifier_from_scratch"

# Export: SavedModels that take text, and an encoder for TF Hub.
once export_classifier export.run_export --task=classifier --model_dir="$out/classifier/seed-0/model" \
    --output_dir="$out/saved_models/classifier"
for task in masked_lm encoder; do
    once "export_$task" export.run_export --task=$task --model_dir="$out/pretraining/model" \
        --output_dir="$out/saved_models/$task"
done

# Answers: over HTTP and gRPC, and through TF Hub, compared with the ones that Keras gives.
once answers demo.query --demo_dir="$out"

# What came out: a table, and curves.png.
"${PYTHON:-python}" -m demo.report --demo_dir="$out"
echo "Next: python -m export.server --model=classifier=$out/saved_models/classifier --playground"
