"""Values: periods, models, the vocabulary of links, checks of input, text. Pure: they depend on errors and on no store."""
