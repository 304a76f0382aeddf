"""Our own studies, on the runner of the package: ``python -m studies NAME``."""

from studies.cartpole import velocities
from studies.little_text import study as little_text
from studies.tabular import rivals

STUDIES = (little_text.STUDY, rivals.STUDY, velocities.STUDY)
"""What ``python -m studies --list`` names, in that order."""
