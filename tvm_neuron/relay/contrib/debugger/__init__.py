"""`tvm.contrib.debugger`: runs that tell where the time goes."""
