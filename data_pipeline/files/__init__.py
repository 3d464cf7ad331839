"""Files on a disk or in a bucket: found, read, and written so that no reader sees a part."""
