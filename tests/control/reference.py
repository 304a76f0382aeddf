"""A slow and obvious twin of the stacked REINFORCE: one run, plain torch modules; and plain loops for the rest."""

import torch
from torch import nn


class Run:
    """One policy 121 – 32 – 4 and its training; ``target`` is P̂(· | x), ``[width, actions]``."""

    def __init__(self, grid, target, method, strength, hidden=32, rate=0.01, discount=0.9):
        self.grid, self.target, self.method, self.strength = grid, target, method, strength
        self.discount = discount
        self.net = nn.Sequential(nn.Linear(grid.n_states, hidden), nn.Tanh(), nn.Linear(hidden, 4))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=rate)

    def log_policy(self, y, x):
        one_hot = torch.zeros(self.grid.n_states)
        one_hot[y * self.grid.width + x] = 1.0
        return torch.log_softmax(self.net(one_hot), -1)

    def loss(self, places, actions, rewards):
        to_go, weights = 0.0, []
        for reward in reversed(rewards):
            to_go = reward + self.discount * to_go
            weights.insert(0, to_go)
        n = len(places)
        loss = torch.zeros(())
        for (y, x), action, weight in zip(places, actions, weights, strict=True):
            loss = loss - self.log_policy(y, x)[action] * weight / n
        if self.method == "imm":
            for _, x in places:
                induced = sum(self.log_policy(y, x).exp() for y in range(self.grid.height)) / self.grid.height
                loss = loss - self.strength * self.cross_entropy(x, induced.log()) / n
        if self.method == "reverse-kd":
            for y, x in places:
                loss = loss - self.strength * self.cross_entropy(x, self.log_policy(y, x)) / n
        return loss

    def cross_entropy(self, x, log_q):
        """``Σ_a P̂(a|x) log q(a)``."""
        return sum(self.target[x, a] * log_q[a] for a in range(4) if self.target[x, a] > 0)

    def clone(self, steps, rate=0.01):
        """Behaviour cloning: the target at every cell alike."""
        optimizer = torch.optim.Adam(self.net.parameters(), lr=rate)
        for _ in range(steps):
            cells = [(y, x) for y in range(self.grid.height) for x in range(self.grid.width)]
            loss = -sum(self.cross_entropy(x, self.log_policy(y, x)) for y, x in cells) / len(cells)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    def update(self, walk):
        self.optimizer.zero_grad()
        self.loss(*walk).backward()
        self.optimizer.step()


def loss_by_loops(log_policy, observations, actions, rewards, discount, lam, short, target, belief):
    """REINFORCE with IMM in any world, one step at a time.

    ``log_policy`` is of one observation, ``short`` a function of one, ``target`` of one short context; ``belief`` gives
    pairs of an observation and its weight for one short context.
    """
    n = len(observations)
    loss = torch.zeros(())
    for t in range(n):
        to_go = sum(discount ** (later - t) * rewards[later] for later in range(t, n))
        loss = loss - log_policy(observations[t])[actions[t]] * to_go / n
    for observation in observations:
        seen = short(observation)
        induced = sum(weight * log_policy(extended).exp() for extended, weight in belief(seen))
        for action, p in enumerate(target(seen).tolist()):
            loss = loss - lam * p * induced[action].log() / n
    return loss


def advantages_by_loops(rewards, values, terminated, ended, discount, trace):
    """Of one environment: each advantage as a sum over what comes until the end; ``values`` has one more."""
    found = []
    for t in range(len(rewards)):
        total, factor = 0.0, 1.0
        for later in range(t, len(rewards)):
            after = 0.0 if terminated[later] else values[later + 1]
            total += factor * (rewards[later] + discount * after - values[later])
            factor *= discount * trace
            if ended[later]:
                break
        found.append(total)
    return found
