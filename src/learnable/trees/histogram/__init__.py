"""The grower that works on binned columns: bins, histograms, leaf-wise growth by threads."""
