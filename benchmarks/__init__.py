"""Speed and memory, compared with other libraries and with the limit of the machine."""
