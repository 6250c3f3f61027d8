"""Parts of a batch run some kernels apart: the PE array works for one of them while another's rows are normed."""
