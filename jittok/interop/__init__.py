"""Other libraries' call signatures and objects; each is imported inside functions only."""
