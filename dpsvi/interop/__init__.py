"""Other libraries' formats; each module is imported only when asked for."""
