"""The figures and tables of the papers, one module each: settings, run, verdict, picture."""
