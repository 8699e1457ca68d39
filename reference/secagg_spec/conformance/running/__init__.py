"""Run the kit: select the checks, set their order, compare with expectations, and collect failures."""
