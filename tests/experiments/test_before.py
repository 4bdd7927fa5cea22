"""What became of our rows of the panel since a revision."""

from experiments.panel import before

HEADER = "corpus,topics,entrant,passes_asked,threads,seed,cut,perplexity"


def rows(*lines):
    return before.rows_of([HEADER, *lines], "defaults")


def test_cases_are_read_at_the_same_passes_and_seeds():
    then = rows(
        "bbc,20,defaults,30,2,0,False,100.0", "bbc,20,defaults,30,2,1,False,110.0",
        "bbc,20,defaults,100,2,0,False,50.0", "m10,20,defaults,30,2,0,False,7.5",
        "nyt,20,defaults,10,2,0,False,9.0", "nyt,20,defaults,30,2,0,True,8.0",
        "ap,20,kept,30,2,0,False,9.0",
    )  # fmt: skip
    now = rows(
        "bbc,20,defaults,30,2,0,False,90.0", "bbc,20,defaults,30,2,1,False,110.0",
        "bbc,20,defaults,30,2,2,False,1.0", "bbc,20,defaults,100,2,0,False,1.0",
        "m10,20,defaults,30,2,0,False,7.5", "nyt,20,defaults,10,2,0,False,9.9",
        "nyt,20,defaults,30,2,0,False,1.0", "ap,20,kept,30,2,0,False,1.0",
    )  # fmt: skip
    cases = before.compare(then, now)
    assert cases == [
        {"corpus": "bbc", "topics": 20, "passes": 30, "seeds": 2, "before": 105.0, "now": 100.0},
        {"corpus": "nyt", "topics": 20, "passes": 10, "seeds": 1, "before": 9.0, "now": 9.9},
    ]
    text = before.table(cases, "defaults", "abc")
    assert "Of 2 cases that changed 1 are lower, +2.62 % on average (-4.8 to +10.0 %)" in text
    assert "| nyt | 20 | 10 | 1 | 9.0 | 9.9 | +10.00 |" in text
