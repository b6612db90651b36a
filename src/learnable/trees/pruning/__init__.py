"""Pruning: weakest links (cost complexity), and bottom-up with an error estimate."""
