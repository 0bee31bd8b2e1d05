"""The seam: what a vendor backend implements, how it is found, probed and chosen."""
