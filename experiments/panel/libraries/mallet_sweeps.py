"""How topica and pyrmallet, which both follow MALLET, share out their sweeps over all tokens.

Neither shows its topics before the training has ended, so each number of passes is a run of its
own.
"""

from __future__ import annotations

# The last is the default of both: 1,000 sweeps, then 5 samples that are 25 sweeps apart.  Alpha and
# beta are learned after the first 200.
PASSES = (10, 30, 100, 300, 1125)
_SAMPLES, _INTERVAL = 5, 25


def shared_out(passes: int) -> dict[str, int]:
    """Return ``num_samples`` and ``sample_interval``, which make up at most half of the passes.

    Their product is the number of passes that follow the others; the topics are the mean of the
    samples.
    """
    interval = min(_INTERVAL, passes // (2 * _SAMPLES))
    if not interval:
        return {"num_samples": 1, "sample_interval": 1}
    return {"num_samples": _SAMPLES, "sample_interval": interval}


def before_samples(passes: int) -> int:
    """Passes before those of :func:`shared_out`."""
    later = shared_out(passes)
    return passes - later["num_samples"] * later["sample_interval"]
