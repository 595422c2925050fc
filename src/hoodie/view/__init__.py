"""The data table as of an instant: properties, timeline, schema, file slices and pending plans.

A view is loaded once a step and handed down.
"""
