"""What a run says: on the terminal, as JSON, JUnit and Markdown, and as a page."""
