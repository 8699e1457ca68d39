"""What finds each mutant: the search, the evidence that is stored, and what a run would notice."""
