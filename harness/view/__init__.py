"""Saved runs in the browser: a server on this machine only, its routes as JSON, and a page of plain files.

What comes from a run is data in JSON all the way into the page, which puts it there as text and never as markup.
"""
