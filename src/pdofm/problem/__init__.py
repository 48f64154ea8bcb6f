"""Problems: an equation on a domain, its conditions and its data."""
