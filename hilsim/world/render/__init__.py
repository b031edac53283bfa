"""Ray casting into the scene, on the CPU and on CUDA."""
