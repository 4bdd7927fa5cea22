"""A strategy that takes half of every update."""


class Strategy:
    """See :class:`dpsvi.base.Strategy`."""

    needs_log = False
    bears = 1.0

    def __init__(self, rate=1.0, strict=False):
        self.rate = rate

    def __call__(self, parameters, updates):
        """Decay what is there by half as much, and add half."""
        for update in updates:
            parameters.decay(update, 0.5 * self.rate)
            parameters.add(update, 0.5 * self.rate)
