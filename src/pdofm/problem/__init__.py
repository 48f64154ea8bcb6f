"""Problems: an equation on a domain, with its conditions and data."""
