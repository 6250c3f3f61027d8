"""One subgraph over several cores: where it can be cut, what each part costs, and the cut that is quickest."""
