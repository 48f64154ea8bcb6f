"""What equations are made of: operators, terms, jets and symbols."""
