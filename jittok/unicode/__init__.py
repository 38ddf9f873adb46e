"""Pinned Unicode data."""
