"""The writers of the pages that are made from data, one module for each kind of page."""
