"""The figures and tables of the papers, one module for each: settings, run, verdict, picture."""
