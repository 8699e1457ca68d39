"""Which protocol to choose, with which parameters, and at which cost: the answer to a wish, by the text's formulas."""
