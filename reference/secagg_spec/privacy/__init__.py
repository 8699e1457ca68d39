"""Privacy decided by the running code: what a coalition's view determines, as exact linear algebra."""
