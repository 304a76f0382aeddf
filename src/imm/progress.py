"""How long work is reported: functions that are told how far it is."""

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called with how much is done and how much there is: pieces, rows or bytes."""

TrainingProgress = Callable[[int, int, str], None]
"""Called with the steps that are done, the steps that there are at most, and how well it goes."""
