"""The data table as of an instant: properties, timeline, schema, file slices and pending plans.

Each step of an operation loads one view and passes it to the functions that it calls. A view never changes;
`TableView.refreshed` returns a newer view. The views of one table share a `TableState`, so that a further view parses
only new instants.
"""
