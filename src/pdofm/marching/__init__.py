"""Evolution in time: one slab after another, the end of each as the start of the next."""
