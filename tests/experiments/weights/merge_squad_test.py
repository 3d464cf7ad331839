"""Files of SQuAD as one that training reads."""

import json

from data_pipeline.finetuning.squad_files import read_squad


def test_the_first_answers_of_all_files_are_trained_on(tmp_path, result_of):
    context = "A cat sat on a mat."
    for name, answers in (("a", ["cat", "mat"]), ("b", ["mat"])):
        answers = [{"text": text, "answer_start": context.index(text)} for text in answers]
        question = {"id": name, "question": "Who?", "answers": answers}
        paragraphs = [{"context": context, "qas": [question]}]
        content = {"version": "1.1", "data": [{"title": name, "paragraphs": paragraphs}]}
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    output = tmp_path / "train.out"
    result = result_of(
        "experiments.weights.merge_squad", f"--input={tmp_path}/*.json", f"--output={output}"
    )
    assert result.returncode == 0 and "2 questions of 2 files" in result.stdout
    read = read_squad(str(output), training=True).questions
    assert [each.answers[0].text for each in read] == ["cat", "mat"]
    for content in ("{", "{}", '{"data": [{"paragraphs": [{}]}]}'):
        (tmp_path / "c.json").write_text(content)
        result = result_of(
            "experiments.weights.merge_squad", f"--input={tmp_path}/c.json", f"--output={output}"
        )
        assert result.returncode == 2 and "c.json is not in SQuAD's format" in result.stderr
