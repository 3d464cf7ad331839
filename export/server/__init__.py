"""A local model server with TF Serving's REST and gRPC APIs: `python -m export.server`."""
