# SPDX-License-Identifier: Apache-2.0
"""Rules as text: what is understood, and the sentences that refuse the rest."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blazar.model.base.errors import InvalidInput
from blazar.model.series.rule import Frequency, Rule, Weekday
from blazar.model.series.rule_text import WEEKDAYS, parse_rule, rule_text


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("FREQ=DAILY", Rule(Frequency.DAILY)),
        ("FREQ=WEEKLY;BYDAY=MO,WE;COUNT=30", Rule(Frequency.WEEKLY, count=30, weekdays=(Weekday(0), Weekday(2)))),
        ("INTERVAL=2;FREQ=WEEKLY;WKST=SU", Rule(Frequency.WEEKLY, interval=2, week_start=6)),
        ("FREQ=MONTHLY;BYDAY=-1FR,+2TU", Rule(Frequency.MONTHLY, weekdays=(Weekday(4, -1), Weekday(1, 2)))),
        (
            "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=-1;BYSETPOS=1",
            Rule(Frequency.YEARLY, months=(2,), month_days=(-1,), positions=(1,)),
        ),
        ("FREQ=DAILY;UNTIL=20301231", Rule(Frequency.DAILY, until=datetime(2030, 12, 31, 23, 59, 59))),
        ("FREQ=DAILY;UNTIL=20301231T080000", Rule(Frequency.DAILY, until=datetime(2030, 12, 31, 8))),
        ("FREQ=DAILY;UNTIL=20301231T080000Z", Rule(Frequency.DAILY, until=datetime(2030, 12, 31, 8, tzinfo=UTC))),
    ],
)
def test_a_rule_of_the_subset_is_read(text, rule):
    assert parse_rule(text) == rule


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "'' is not a part such as FREQ=WEEKLY"),
        ("FREQ=DAILY;", "'' is not a part"),
        ("FREQ=DAILY;;COUNT=2", "'' is not a part"),
        ("FREQ=", "'FREQ=' is not a part"),
        ("FREQ", "'FREQ' is not a part"),
        ("COUNT=3", "FREQ is missing; give DAILY, WEEKLY, MONTHLY or YEARLY"),
        ("RRULE:FREQ=DAILY", "leave RRULE: out"),
        ("freq=daily", "'f' cannot be in a rule; write one rule in capital letters"),
        ("FREQ=DAILY\nRDATE:20300101", r"'\\n' cannot be in a rule"),
        ("FREQ=DAILY; COUNT=3", "' ' cannot be in a rule"),
        ("FREQ=DAILY;COUNT=\u0663", "cannot be in a rule"),
        ("FREQ=SECONDLY", "FREQ=SECONDLY is not supported; give DAILY, WEEKLY, MONTHLY or YEARLY"),
        ("FREQ=HOURLY;BYDAY=MO", "FREQ=HOURLY is not supported"),
        ("FREQ=DAILY;BYHOUR=8,9", "BYHOUR is not supported: each occurrence begins at the time of the start"),
        ("FREQ=DAILY;BYMINUTE=1", "BYMINUTE is not supported"),
        ("FREQ=DAILY;BYSECOND=1", "BYSECOND is not supported"),
        ("FREQ=YEARLY;BYWEEKNO=53", "BYWEEKNO is not supported: use FREQ=WEEKLY with INTERVAL"),
        ("FREQ=YEARLY;BYYEARDAY=200", "BYYEARDAY is not supported: use BYMONTH and BYMONTHDAY"),
        ("FREQ=YEARLY;BYEASTER=0", "BYEASTER is not supported: list the dates"),
        ("FREQ=DAILY;X-NAME=1", "X-NAME is no part of a rule; the parts are FREQ, INTERVAL"),
        ("FREQ=DAILY;FREQ=WEEKLY", "FREQ is given twice"),
        ("FREQ=DAILY;COUNT=3;UNTIL=20300101", "COUNT and UNTIL cannot both be given"),
        ("FREQ=DAILY;COUNT=0", "COUNT=0 is not a whole number from 1 to 1000"),
        ("FREQ=DAILY;COUNT=1000000000", "COUNT=1000000000 is not a whole number from 1 to 1000"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL=0 is not a whole number from 1 to 366"),
        ("FREQ=YEARLY;INTERVAL=367", "INTERVAL=367 is not a whole number from 1 to 366"),
        ("FREQ=DAILY;INTERVAL=+2", "INTERVAL=.2 is not a whole number"),
        ("FREQ=DAILY;BYDAY=1MO", "BYDAY: 1MO has a number: only with FREQ=MONTHLY or YEARLY; give MO"),
        ("FREQ=WEEKLY;BYDAY=-1MO", "only with FREQ=MONTHLY or YEARLY"),
        ("FREQ=MONTHLY;BYDAY=6MO", "BYDAY: the number of 6MO is not from 1 to 5 or -1 to -5"),
        ("FREQ=MONTHLY;BYDAY=0MO", "the number of 0MO is not"),
        ("FREQ=WEEKLY;BYDAY=XX", "BYDAY: 'XX' is none of MO, TU"),
        ("FREQ=WEEKLY;BYDAY=MO,", "BYDAY: '' is none of MO, TU"),
        ("FREQ=WEEKLY;BYDAY=MO,MO", "BYDAY: MO is given twice"),
        ("FREQ=MONTHLY;BYMONTHDAY=0", "BYMONTHDAY: '0' is not a whole number from 1 to 31 or -1 to -31"),
        ("FREQ=MONTHLY;BYMONTHDAY=32", "BYMONTHDAY: '32' is not"),
        ("FREQ=MONTHLY;BYMONTHDAY=1,+1", "BYMONTHDAY: 1 is given twice"),
        ("FREQ=WEEKLY;BYMONTHDAY=13", "BYMONTHDAY cannot be given with FREQ=WEEKLY; use BYDAY"),
        ("FREQ=YEARLY;BYMONTH=13", "BYMONTH: '13' is not a whole number from 1 to 12"),
        ("FREQ=YEARLY;BYMONTH=-1", "BYMONTH: '-1' is not a whole number from 1 to 12"),
        ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=32", "BYSETPOS: '32' is not"),
        ("FREQ=WEEKLY;BYDAY=MO;BYSETPOS=5", "BYSETPOS cannot be given with FREQ=WEEKLY"),
        ("FREQ=MONTHLY;BYSETPOS=1", "BYSETPOS counts the days that another part chooses"),
        ("FREQ=WEEKLY;WKST=1", "WKST=1 is no weekday"),
        ("FREQ=DAILY;UNTIL=2030-01-01", "UNTIL=2030-01-01 is not a date such as 20301231"),
        ("FREQ=DAILY;UNTIL=20300230", "UNTIL=20300230 is not a date"),
        ("FREQ=DAILY;UNTIL=99991231T000000Z", "UNTIL=99991231T000000Z is not of the years 1970 to 8999"),
        ("FREQ=DAILY;UNTIL=00010101", "UNTIL=00010101 is not of the years"),
        ("FREQ=DAILY;BYMONTHDAY=" + ",".join(["1"] * 4000), "it has 8021 characters; the limit is 500"),
    ],
)
def test_what_is_not_of_the_subset_is_refused_by_name(text, sentence):
    with pytest.raises(InvalidInput, match="^rule: .*" + sentence.replace("(", r"\(")) as refused:
        parse_rule(text)
    assert (refused.value.pointer, refused.value.code) == ("/rule", "invalid_value")
    assert len(refused.value.message) < 300


PIECES = st.sampled_from(
    ["FREQ", "COUNT", "UNTIL", "BYDAY", "BYMONTHDAY", "BYSETPOS", "=", ";", ",", "-", "1", "Z", "é"]
)


@given(st.one_of(st.text(max_size=40), st.lists(PIECES | st.sampled_from(WEEKDAYS), max_size=30).map("".join)))
def test_any_text_is_a_rule_or_refused_as_input(text):
    for each in (text, "FREQ=MONTHLY;" + text):
        try:
            rule = parse_rule(each)
        except InvalidInput:
            continue
        assert parse_rule(rule_text(rule)) == rule


@pytest.mark.parametrize("wrong", [{"interval": 0}, {"interval": 10**6}, {"count": 0}])
def test_a_rule_that_means_nothing_cannot_be_built(wrong):
    with pytest.raises(ValueError, match="interval|occurrence"):
        Rule(Frequency.DAILY, **wrong)


def test_a_rule_has_one_end():
    with pytest.raises(ValueError, match="not both"):
        Rule(Frequency.DAILY, count=1, until=datetime(2030, 1, 1))
