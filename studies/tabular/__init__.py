"""Tables: IMM and what practitioners do instead."""
