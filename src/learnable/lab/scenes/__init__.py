"""The scenes, by kind: descent, margins, trees, clusters, sequences, processes, chains, networks, decisions."""
