"""What `benchmarks.relay_scripts` needs to run the scripts of TVM's gallery without a network."""
