"""Long work on data: claimed here, carried out by child processes, published when it is whole."""
