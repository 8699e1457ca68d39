"""The output of a run: on the terminal, as JSON, JUnit XML and Markdown, and as an HTML page."""
