"""`trellis gpu-check`: whether a machine with NVIDIA GPUs has what the GPU recipes need, and runs them.

Libraries first, then short runs of vLLM and of the engines. Each check is a process of its own: this package
never imports torch, and a crash of one library does not hide the state of the next.
"""
