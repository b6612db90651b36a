"""Programs with constraints: quadratic and linear ones by an interior point, box-constrained duals by SMO."""
