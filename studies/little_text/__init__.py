"""A small GPT-2 on parts of a text, with the bigram of all of it."""
