"""A grid as pixels and as text."""

import numpy as np
from numpy.typing import NDArray

LOW, HIGH = np.array([24, 24, 72]), np.array([255, 236, 140])
AGENT = np.array([214, 40, 40])


def pixels(reward: NDArray[np.float64], place: tuple[int, int] | None = None, cell: int = 24) -> NDArray[np.uint8]:
    """``[height · cell, width · cell, 3]``: the brighter, the more reward; the agent is a red disc."""
    span = float(np.ptp(reward))
    shade = ((reward - reward.min()) / (span or 1.0))[..., None]
    image = np.kron(LOW + shade * (HIGH - LOW), np.ones((cell, cell, 1)))
    if place is not None:
        offset = np.arange(cell) - (cell - 1) / 2
        disc = offset[:, None] ** 2 + offset**2 <= (0.38 * cell) ** 2
        top, left = place[0] * cell, place[1] * cell
        image[top : top + cell, left : left + cell][disc] = AGENT
    return image.round().astype(np.uint8)


def text(reward: NDArray[np.float64], place: tuple[int, int]) -> str:
    """A line for each y: a digit from 0 to 9 for the reward, ``@`` for the agent."""
    span = float(np.ptp(reward))
    digits = ((reward - reward.min()) / (span or 1.0) * 9).round().astype(int)
    rows = [[str(digit) for digit in row] for row in digits]
    rows[place[0]][place[1]] = "@"
    return "\n".join(" ".join(row) for row in rows)
