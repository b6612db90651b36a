"""What an ensemble has learned: importances, effects, Shapley values, margins."""
