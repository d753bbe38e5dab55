"""What a published client must be able to do with our broker. One file a subject."""
