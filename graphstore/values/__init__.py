"""Values: periods, models, the vocabulary of links, checks of input, text. Pure: it knows errors and nothing of a store."""
