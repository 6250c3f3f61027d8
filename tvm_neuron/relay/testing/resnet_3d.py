"""ResNet over volumes or videos."""

from tvm_neuron.relay.testing.layers import conv3d
from tvm_neuron.relay.testing.residual import family

get_net, get_workload = family(conv3d, "NCDHW", (3, 16, 112, 112))
