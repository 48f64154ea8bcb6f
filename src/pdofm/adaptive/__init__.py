"""The search for a space in which a tolerance is reached."""
