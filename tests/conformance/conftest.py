"""What lies in `inside` belongs to the processes that run other packages' tests; it is no test of its own."""

collect_ignore = ["inside"]
