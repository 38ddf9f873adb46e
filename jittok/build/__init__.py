"""Specs to tables: regexes, merges, normalizers, added tokens."""
