"""ResNet (He et al., "Identity Mappings in Deep Residual Networks")."""

from tvm_neuron.relay.testing.layers import conv2d
from tvm_neuron.relay.testing.residual import family

get_net, get_workload = family(conv2d, "NCHW", (3, 224, 224))
