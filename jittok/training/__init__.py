"""Training: texts are read, cut into words and counted, and vocabularies learned from the counts."""
