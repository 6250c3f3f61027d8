"""Where everything lies: SBUF offsets by lifetime, what is spilled to DRAM, and the access patterns that follow."""
