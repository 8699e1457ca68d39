"""Traces of rounds: recorded as the server sees them, and checked afterwards.

Source: spec/traces.md.
"""
