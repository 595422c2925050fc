"""The pages of `hoodie ui`: tables below given places, as JSON reports and static files on a local port, or one file.

Read-only. Reports are what methods of `Inspection` return: a page has no query of its own. The pages are in `static/`.
"""
