"""A smooth loss plus a penalty with kinks: coordinate descent on working sets, with gap-safe screening."""
