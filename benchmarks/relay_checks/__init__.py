"""The plugin of pytest with which `benchmarks.relay_tests` runs tests of TVM 0.18 under TVM 0.27."""
