"""The data table as of an instant: properties, timeline, schema, file slices and pending plans.

A view is loaded once a step and handed down. It never changes; `TableView.refreshed` gives the next one. The views of
one table share a `TableState`, so that a further view parses only what is new.
"""
