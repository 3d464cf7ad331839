"""Graph versions of Python code: a server has no Python, but must give the same answers.

Therefore everything between a text and an answer is implemented twice, and the test in the last
column compares both: a change to one side needs the same change to the other. Twins that
`albert_tf` also uses are in `data_pipeline/tokenizers`; `checks.py` has no twin.

| in Python                               | in a graph                     | compared in        |
| --------------------------------------- | ------------------------------ | ------------------ |
| normalization.normalize                 | graph.normalize_graph          | graph              |
| wordpiece.split_words                   | graph.split_words_graph        | wordpiece          |
| loading.load_tokenizer                  | graph.graph_tokenizer          | every_kind         |
| alignment.align                         | graph_offsets.align_graph      | graph_offsets      |
| encoding.encode_batch                   | text_graph.TextEncoder         | text_graph         |
| encoding.encode_with_masks              | text_graph.TextEncoder         | text_graph         |
| features.kept_lengths                   | text_graph.fair_lengths        | text_graph         |
| features.fill_blank                     | choices.fill_blanks            | choices            |
| squad_windows.make_windows              | windows.make_windows           | question_answering |
| squad_windows.max_context               | windows.GraphWindows           | question_answering |
| squad_candidates.candidates_from_logits | answers.spans_of_logits        | question_answering |
| squad_candidates.candidates_from_beams  | answers.spans_of_beams         | question_answering |
| squad_answers.best_answers              | answers.best_answers           | question_answering |
| squad_answers.null_odds                 | answers.null_scores            | question_answering |
"""
