"""`tvm.contrib` as TVM 0.18 had it: executors, pipelines, pictures of modules, folders that go away."""
