"""What is drawn: requests and sessions inside what an adapter declares, shaped so that failures shrink."""
