"""The time that an adapter has to start."""

START_SECONDS = 60.0
