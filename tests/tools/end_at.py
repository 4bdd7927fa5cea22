"""A callback that interrupts a fit."""


class EndAt:
    """End a fit like Ctrl-C, after so many steps."""

    def __init__(self, step):
        self.step = step

    def __call__(self, event):
        if event.step >= self.step:
            raise KeyboardInterrupt
