"""What a release needs beside the sources: a checked wheel, and a list of what is in it."""
