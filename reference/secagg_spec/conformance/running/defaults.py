"""The default time limits of a run."""

from secagg_spec.conformance.adapter.limits import START_SECONDS

SECONDS = 10.0


def waits(timeout: float, start_timeout: float) -> list[str]:
    """Return the time-outs that are not the defaults as options; a replay with them waits as long."""
    words = ["--timeout", f"{timeout:g}"] if timeout != SECONDS else []
    return words + (["--start-timeout", f"{start_timeout:g}"] if start_timeout != START_SECONDS else [])
