"""An app in which a node is killed by SIGKILL in a phase of a round."""
