"""Corpora: files of documents in, files of ids out, in jobs that may be killed and started again."""
