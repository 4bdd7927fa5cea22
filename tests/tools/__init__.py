"""What tests of several folders share, and programs that they start under ``mpiexec``."""
