"""A server of the Open Inference Protocol v2 over `runtime.service`: REST and gRPC, on the KServe SDK's messages."""
