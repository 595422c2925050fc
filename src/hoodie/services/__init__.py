"""Table services, one package a job: each makes a plan and executes it."""
