"""From a problem, features and points to a least-squares system."""
