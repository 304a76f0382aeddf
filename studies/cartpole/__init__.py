"""A cart-pole whose old policy sees no velocities."""
