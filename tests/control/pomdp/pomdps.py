"""Small problems from textbooks."""

import numpy as np

from imm.control.pomdp import Pomdp

TIGER = """
# A tiger is behind one of two doors.
discount: 0.95
values: reward
states: tiger-left tiger-right
actions: listen open-left open-right
observations: hear-left hear-right

T: listen
identity
T: open-left
uniform
T: open-right
uniform

O: listen
0.85 0.15
0.15 0.85
O: open-left
uniform
O: open-right
uniform

R: listen : * : * : * -1
R: open-left : tiger-left : * : * -100
R: open-left : tiger-right : * : * 10
R: open-right : tiger-left : * : * 10
R: open-right : tiger-right : * : * -100
"""


def corridor(slip: float, blur: float, discount: float = 0.9) -> Pomdp:
    """Five cells in a row, the fourth is the goal and sends back to anywhere; walls are seen, but for a blur.

    A step fails with probability ``slip``; an end of the corridor is taken for its middle, or the middle for an end,
    with probability ``blur``; the goal is always seen.
    """
    n, goal = 5, 3
    T = np.zeros((2, n, n))
    for action, move in enumerate((-1, 1)):
        for s in range(n):
            T[action, s, s] += slip
            T[action, s, min(max(s + move, 0), n - 1)] += 1 - slip
        T[action, goal] = [0.25, 0.25, 0.25, 0.0, 0.25]
    wall = np.array([[1 - blur, blur, 0], [blur, 1 - blur, 0], [blur, 1 - blur, 0], [0, 0, 1], [1 - blur, blur, 0]])
    return Pomdp(T, wall, [0, 0, 0, 1, 0], discount, actions=("left", "right"), observations=("wall", "none", "goal"))
