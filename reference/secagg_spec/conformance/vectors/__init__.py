"""Test vectors: fixed requests, each with the one outcome that the text allows; how they are stored and judged."""
