"""The grid of Fig. rl: a policy that sees all, helped by one that sees x only."""
