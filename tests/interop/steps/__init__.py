"""Scripts for JVM Hudi, one page of its documentation each, that JVM Hudi and hoodie both run step by step."""
