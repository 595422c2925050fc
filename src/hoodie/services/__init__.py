"""Table services, one package for each service: each service makes a plan and executes it."""
