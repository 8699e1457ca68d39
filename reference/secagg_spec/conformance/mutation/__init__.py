"""Find what kills each mutant: the search, the stored evidence, and the mutants that a run would notice."""
