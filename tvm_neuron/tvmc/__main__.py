"""`python -m tvm_neuron.tvmc`."""

import sys

from tvm_neuron.tvmc.main import main

sys.exit(main())
