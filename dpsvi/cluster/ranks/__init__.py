"""The processes of a fit over MPI: rank 0, the others, who is alive."""
