"""area_mm2: a proxy for what a NeuronCore takes on silicon, so that more SRAM or a larger array has its price."""

from tvm_neuron.hw import Device

# M. Horowitz, "Computing's energy problem", ISSCC 2014, of 45 nm in um^2: a product in fp16, sums and products in fp32.
_FP16_PRODUCT, _FP32_SUM, _FP32_PRODUCT = 1640, 4184, 7700
# K. Mistry et al., "A 45nm logic technology", IEDM 2007: a bit of SRAM is 0.346 um^2; cells are taken as 70 % of it.
_SRAM_BYTE = 8 * 0.346 / 0.7
_ENGINES = 2  # ACT and POOL, with a lane for each partition


def area_mm2(device: Device) -> float:
    """SRAM, the cells of the PE array and the lanes of ACT and POOL of one core, in mm^2 of a 45 nm process.

    Good to compare chips that differ in these sizes; no chip's area: control, wires, DMA and caches are left out, and
    processes since then shrank logic more than SRAM.

    >>> from dataclasses import replace
    >>> from tvm_neuron.hw import load_device
    >>> from tvm_neuron.sweep.area import area_mm2
    >>> inf2 = load_device("inf2")
    >>> half = replace(inf2, sbuf_bytes_per_partition=inf2.sbuf_bytes_per_partition // 2)
    >>> round(area_mm2(inf2)), round(area_mm2(half))
    (206, 157)
    """
    sram = (device.sbuf_bytes_per_partition + device.psum_bytes_per_partition) * device.partitions * _SRAM_BYTE
    array = device.pe_rows * device.pe_columns * (_FP16_PRODUCT + _FP32_SUM)
    lanes = _ENGINES * device.partitions * (_FP32_PRODUCT + _FP32_SUM)
    return (sram + array + lanes) / 1e6
