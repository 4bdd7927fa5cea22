"""What the process ends with; 0 is good, 128 + the number is a signal."""

FAILURE = 1
USAGE = 2  # wrong options
BAD_DATA = 3
DIVERGED = 4  # NaN or infinite parameters
LOST = 5  # ranks were lost
