"""Pictures, sections and files for other programs."""
