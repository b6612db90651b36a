"""The scenes, by kind: descent, margins, trees, clusters, sequences, processes, chains, networks, decisions.

Models are imported where a scene is built: to list the scenes loads none of them.
"""
