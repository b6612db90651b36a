"""The documentation's page of every model, and the reference, made from the classes themselves."""
