"""Speed and memory beside other libraries and the limit of the machine."""
