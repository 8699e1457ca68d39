"""The site: its pages, and the program that assembles them."""
