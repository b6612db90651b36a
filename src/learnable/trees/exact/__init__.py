"""The grower that tries every cut of every column: search, sweeps, nodes."""
