"""A strategy that takes half of every update."""


from dpsvi.base import Star


class Strategy(Star):
    """See :class:`dpsvi.base.Star`."""

    as_sent = False

    def __init__(self, rate=1.0, strict=False):
        self.rate = rate

    def __call__(self, parameters, updates):
        """Decay what is there by half as much, and add half."""
        for update in updates:
            parameters.decay(update, 0.5 * self.rate)
            parameters.add(update, 0.5 * self.rate)
