"""The application ``imm fit``: from files to a model, a verdict and a page."""
