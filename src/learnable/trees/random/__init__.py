"""The grower that draws its cuts at random."""
