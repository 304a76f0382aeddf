"""Slow and obvious twins of the POMDP solvers: plain loops; and the optimum itself, by beliefs that can be reached."""

from collections import deque


def arrays(pomdp):
    """T[a][s][s'], O[a][s'][o], R[s][a] as nested lists."""
    return (
        [part.toarray().tolist() for part in pomdp.transition],
        [part.toarray().tolist() for part in pomdp.observation],
        pomdp.reward.tolist(),
    )


def fib_sweep(pomdp, alpha):
    T, O, R = arrays(pomdp)  # noqa: E741
    states, actions, seen = range(pomdp.n_states), range(pomdp.n_actions), range(pomdp.n_observations)
    return [
        [
            R[s][a]
            + pomdp.discount
            * sum(max(sum(O[a][n][o] * T[a][s][n] * alpha[b][n] for n in states) for b in actions) for o in seen)
            for s in states
        ]
        for a in actions
    ]


def qmdp_sweep(pomdp, alpha):
    T, _, R = arrays(pomdp)
    states, actions = range(pomdp.n_states), range(pomdp.n_actions)
    return [
        [R[s][a] + pomdp.discount * sum(T[a][s][n] * max(alpha[b][n] for b in actions) for n in states) for s in states]
        for a in actions
    ]


def optimum(pomdp, belief, limit=2000, digits=6):
    """The optimal value at ``belief``, from below and from above.

    Every belief that can be reached is a state of an MDP; beyond ``limit`` of them the worst or the best that can
    happen is taken. Beliefs that agree to ``digits`` digits are one.
    """
    T, O, R = arrays(pomdp)  # noqa: E741
    states, actions, seen = range(pomdp.n_states), range(pomdp.n_actions), range(pomdp.n_observations)

    def rounded(b):
        return tuple(round(float(p), digits) for p in b)

    number, queue, steps = {rounded(belief): 0}, deque([belief]), []
    while queue and len(steps) < limit:
        here, options = queue.popleft(), []
        for a in actions:
            after = [sum(here[s] * T[a][s][n] for s in states) for n in states]
            follows = []
            for o in seen:
                joint = [after[n] * O[a][n][o] for n in states]
                p = sum(joint)
                if p > 1e-12:
                    there = [q / p for q in joint]
                    if rounded(there) not in number:
                        number[rounded(there)] = len(number)
                        queue.append(there)
                    follows.append((p, number[rounded(there)]))
            options.append((sum(here[s] * R[s][a] for s in states), follows))
        steps.append(options)
    rewards = [r for row in R for r in row]
    out = []
    for edge in (min(rewards), max(rewards)):
        values = [edge / (1 - pomdp.discount)] * len(number)
        change = 1.0
        while change > 1e-7:
            change = 0.0
            for i, options in enumerate(steps):
                new = max(r + pomdp.discount * sum(p * values[j] for p, j in follows) for r, follows in options)
                change, values[i] = max(change, abs(new - values[i])), new
        out.append(values[0])
    return tuple(out)
