"""The scripts, by name, with their places in TVM's sources."""

_HOW_TO = "gallery/how_to"

SCRIPTS = {
    "relay_quick_start": "gallery/tutorial/relay_quick_start.py",
    "tvmc_python": "gallery/tutorial/tvmc_python.py",
    "tvmc_command_line_driver": "gallery/tutorial/tvmc_command_line_driver.py",
    **{
        f"from_{name}": f"{_HOW_TO}/compile_models/from_{name}.py"
        for name in ("onnx", "pytorch", "tflite", "keras", "tensorflow", "paddle", "coreml")
    },
    **{
        name: f"{_HOW_TO}/deploy_models/{name}.py"
        for name in (
            "deploy_object_detection_pytorch", "deploy_prequantized", "deploy_prequantized_tflite", "deploy_sparse"
        )
    },
    **{
        name: f"{_HOW_TO}/work_with_relay/{name}.py"
        for name in ("build_gcn", "using_external_lib", "using_pipeline_executor", "using_relay_viz")
    },
    "use_pass_infra": f"{_HOW_TO}/extend_tvm/use_pass_infra.py",
    "use_pass_instrument": f"{_HOW_TO}/extend_tvm/use_pass_instrument.py",
    "using_as_torch": f"{_HOW_TO}/work_with_pytorch/using_as_torch.py",
    "using_optimized_torch": f"{_HOW_TO}/work_with_pytorch/using_optimized_torch.py",
}  # fmt: skip
"""The scripts of TVM 0.18's gallery with Relay code in them."""

PAGES = {
    "quick_start": "docs/get_started/tutorials/quick_start.py",
    "ir_module": "docs/get_started/tutorials/ir_module.py",
    **{
        name: f"docs/how_to/tutorials/{name}.py"
        for name in (
            "import_model", "e2e_opt_model", "export_and_load_executable", "customize_opt",
            "mix_python_and_tvm_with_pymodule", "bring_your_own_codegen", "cross_compilation_and_rpc",
        )
    },
}  # fmt: skip
"""TVM 0.27's own pages."""
