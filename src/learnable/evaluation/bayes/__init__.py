"""Known distributions: the best rules, the least risk, the likelihood-ratio test."""
