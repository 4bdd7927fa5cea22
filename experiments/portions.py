"""``python -m experiments.portions``: a stream in portions of few and of many items.

The data of `experiments.small_data`, three quarters of each, come once, by ``partial_fit`` of 5, 40
or 300 items at a time.  Batches have the size that is left to the estimator, that of a fit to all
that has come, or 256 items; a portion counts as its part of one.  Scored are the other items, by
the method `score`, and also after one pass of ``fit``: means of the seeds.
"""

from __future__ import annotations

from statistics import mean

from experiments.small_data import command, lines_of, samples

PORTIONS = 5, 40, 300
BATCHES = None, 256
FIT = "fit, one pass"


def streamed(estimator, data, portion: int):
    """The estimator after it has seen the items once, so many at a time."""
    for first in range(0, len(data), portion):
        estimator.partial_fit(data[first : first + portion])
    return estimator


def measure(n_seeds: int) -> list[dict]:
    """Stream all data in all ways."""
    rows = []
    for facts, estimator, train, test in samples(n_seeds):
        scores = {FIT: float(estimator(max_iter=1).fit(train).score(test))}
        for portion in PORTIONS:
            for batch in BATCHES:
                fitted = streamed(estimator(batch_size=batch), train, portion)
                scores[f"{portion}, {batch or 'left to it'}"] = float(fitted.score(test))
        rows.append({**facts, "scores": scores})
    return rows


def table(rows: list[dict]) -> list[str]:
    """The page, but for its title."""
    ways = list(rows[0]["scores"])

    def cells(mine):
        return [f"{mean(row['scores'][way] for row in mine):.3f}" for way in ways]

    return [
        "Scores of held-out items: items of a portion, and of a batch; mean of "
        f"{len({row['seed'] for row in rows})} seeds. Higher is better.", "",
        *lines_of(rows, ways, cells),
    ]  # fmt: skip


def main(argv=None) -> None:
    """Compare portions and batches."""
    command("portions", __doc__, "Streams in portions", 4, measure, table, argv)


if __name__ == "__main__":
    main()
