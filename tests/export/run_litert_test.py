"""What the program for LiteRT prints."""

from export.comparison import Comparison
from export.litert import LiteRTExport
from export.run_litert import export_summary


def test_the_report_lists_signature_and_size():
    inputs, outputs = {"input_mask": "int32[?, ?]"}, {"logits": "float32[?, 3]"}
    comparison = Comparison("float16", 8_000_000, {"logits": 0.001})
    exported = LiteRTExport("phone/topics", inputs, outputs, 4_050_000, comparison)
    assert export_summary(exported).splitlines() == [
        "exported phone/topics",
        "  signature tokens: input_mask int32[?, ?] -> logits float32[?, 3]",
        "  precision float16: 4.05 MB; weights in float32: 8.00 MB",
        "  largest difference from float32: 1.0e-03, of logits",
        "  accuracy: not measured, for which --eval_file is needed",
    ]
