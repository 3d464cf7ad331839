"""Files on a disk or in a bucket: finding, reading, and writing them atomically."""
