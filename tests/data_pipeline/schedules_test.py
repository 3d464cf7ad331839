"""Numbers that change at steps known beforehand."""

import pytest

from data_pipeline.errors import UserError
from data_pipeline.schedules import Schedule
from data_pipeline.settings import Numbers

SHARES, SIZES = Numbers(float, above=0, below=1), Numbers(int, at_least=1)


def test_a_value_holds_from_its_step_on():
    schedule = Schedule.parse("mask_schedule", "0.3@0,0.15@20,0.2@30", SHARES)
    steps = (0, 19, 20, 29, 30, 10**9)
    assert [schedule.at(step) for step in steps] == [0.3, 0.3, 0.15, 0.15, 0.2, 0.2]
    assert str(schedule) == "0.3@0,0.15@20,0.2@30"
    assert {Schedule((7,)).at(step) for step in steps} == {7}
    assert str(Schedule.parse("sizes", "1048576@0", SIZES)) == "1048576@0"


@pytest.mark.parametrize(
    "text",
    [
        *("", "0.3", "0.3@", "@0", "0.3@1", "0.3@0,0.2@0", "0.3@0,0.2@5,0.1@4", "0.3@0,"),
        *("0.3@0@1", "1@0", "0@0", "nan@0", "0.3@-1", "0.3@0,0.2@1.5", "0.3@0,0.2@99999999999"),
    ],
)
def test_what_is_no_schedule_is_refused(text):
    with pytest.raises(UserError) as error:
        Schedule.parse("mask_schedule", text, SHARES)
    assert str(error.value).startswith(f"--mask_schedule={text}: expected VALUE@STEP, or several")
    assert "each value a finite number above 0, below 1." in str(error.value)
