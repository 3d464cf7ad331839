"""What was tried, and measured once: kept to be repeated, not installed with the packages."""
