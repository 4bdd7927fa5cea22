"""What models of one family share; a family with more than one file is a folder."""
