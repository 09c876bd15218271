"""Long work on data: asked for here, carried out by workers."""
