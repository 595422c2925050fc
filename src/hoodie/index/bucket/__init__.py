"""The simple bucket index: the hash of a key decides its file group, and the file id contains the bucket."""
